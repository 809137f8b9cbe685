// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// stopPoll is the interval at which Stop checks whether the gateways have ended.
const stopPoll = time.Second

// Stop scales a Deployment of gateways to zero. It returns when their Pods are deleted and their Leases
// are free, so that Uninstall can start, or when the context is done. A missing Deployment counts as
// stopped.
func (u *Uninstaller) Stop(ctx context.Context, name string) error {
	deployment := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: u.Namespace, Name: name}
	if err := u.Client.Get(ctx, key, deployment); err != nil {
		return wrapUnlessGone(err, "looking for the gateways' Deployment "+key.String())
	}
	before := client.MergeFrom(deployment.DeepCopy())
	deployment.Spec.Replicas = ptr.To[int32](0)
	if err := u.Client.Patch(ctx, deployment, before); err != nil {
		return wrapUnlessGone(err, "scaling the gateways' Deployment "+key.String()+" to zero")
	}
	in := "not checked yet"
	err := wait.PollUntilContextCancel(ctx, stopPoll, true, func(ctx context.Context) (bool, error) {
		var err error
		in, err = u.inTheWay(ctx, key)
		return in == "", err
	})
	if err != nil {
		return fmt.Errorf("waiting until the gateways of %s have ended (%s): %w", key, in, err)
	}
	return nil
}

// inTheWay describes the remaining gateways, or is empty.
func (u *Uninstaller) inTheWay(ctx context.Context, key client.ObjectKey) (string, error) {
	deployment := &appsv1.Deployment{}
	err := u.Client.Get(ctx, key, deployment)
	if client.IgnoreNotFound(err) != nil {
		return "", err
	}
	if err == nil && (deployment.Status.ObservedGeneration < deployment.Generation || deployment.Status.Replicas > 0) {
		return fmt.Sprintf("%d are there", deployment.Status.Replicas), nil
	}
	err = u.refuseIfRunning(ctx)
	var running *RunningError
	if errors.As(err, &running) {
		return "Lease " + running.Lease + " is held", nil
	}
	return "", err
}

func wrapUnlessGone(err error, doing string) error {
	if client.IgnoreNotFound(err) == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
