// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"fleetgate.io/fleetgate/pkg/addon/agent/score"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
)

// scores writes the member's scores in the hub's namespace with the cluster's name, once the hub serves
// the kind and allows it.
func (a *agent) scores(hubConfig *rest.Config, cluster string) (hubPart, error) {
	hub, err := metadata.NewForConfig(hubConfig)
	if err != nil {
		return hubPart{}, fmt.Errorf("reaching the hub at %s: %w", hubConfig.Host, err)
	}
	scores := hub.Resource(clusterv1alpha1.GroupVersion.WithResource("addonplacementscores")).Namespace(cluster)
	return hubPart{
		undone: "no scores are written", group: clusterv1.GroupName,
		try: func(ctx context.Context) error {
			_, err := scores.Get(ctx, score.Name, metav1.GetOptions{})
			if apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
				return err // The hub serves other kinds of the group.
			}
			return client.IgnoreNotFound(err)
		},
		serve: func(ctx context.Context) error {
			reporter, err := a.scoreReporter(hubConfig, cluster)
			if err != nil {
				return err
			}
			log.FromContext(ctx).V(1).Info("Writing the scores of the member", "namespace", cluster)
			reporter.Run(ctx)
			return nil
		},
	}, nil
}

// withoutScores removes the scores of an earlier configuration before it serves.
func (a *agent) withoutScores(hubConfig *rest.Config, cluster string, serve func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		reporter, err := a.scoreReporter(hubConfig, cluster)
		if err != nil {
			return err
		}
		if err := reporter.Remove(ctx); err != nil {
			log.FromContext(ctx).V(1).Info("Could not remove the scores of the member; they expire", "reason", err.Error())
		}
		return serve(ctx)
	}
}

func (a *agent) scoreReporter(hubConfig *rest.Config, cluster string) (*score.Reporter, error) {
	hub, err := client.New(hubConfig, client.Options{Scheme: a.scheme})
	if err != nil {
		return nil, fmt.Errorf("reaching the hub at %s: %w", hubConfig.Host, err)
	}
	return &score.Reporter{Hub: hub, Namespace: cluster, Free: &a.free, Clock: clock.RealClock{}}, nil
}
