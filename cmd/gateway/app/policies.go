// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"net/http"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"fleetgate.io/fleetgate/cmd/gateway/app/options"
	admissionv1alpha1 "fleetgate.io/fleetgate/pkg/apis/admission/v1alpha1"
	"fleetgate.io/fleetgate/pkg/webhook/immutability"
)

// policySet has the compiled ImmutabilityPolicies and their compiler.
type policySet struct {
	*immutability.Policies
	compiler *immutability.Compiler
}

func newPolicies(config *options.Config) (*policySet, error) {
	if !config.Features.Serves(options.APIAdmission) || !config.Features.Runs(options.ComponentWebhook) && !config.Features.Runs(options.ComponentControllers) {
		return nil, nil
	}
	compiler, err := immutability.NewCompiler()
	if err != nil {
		return nil, err
	}
	return &policySet{Policies: immutability.NewPolicies(compiler), compiler: compiler}, nil
}

// addPolicyControllers maintains the webhooks and status of policies, in the leader.
func (g *gateway) addPolicyControllers(_ context.Context, mgr ctrl.Manager) error {
	if g.policies == nil || !g.Features.Runs(options.ComponentControllers) {
		return nil
	}
	failClosed := sets.New(g.Webhooks.FailClosedGroups...)
	return setUp(mgr, []controller{
		&immutability.WebhookReconciler{
			Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Policies: g.policies.Policies, ClientConfig: g.reviews.ClientConfig,
			FailClosed: failClosed, Namespace: g.Hub.Namespace, Clock: clock.RealClock{},
		},
		&immutability.StatusReconciler{
			Client: mgr.GetClient(), Policies: g.policies.Policies, Mapper: mgr.GetRESTMapper(),
			Schemas:    &resolver.ClientDiscoveryResolver{Discovery: g.clientset.Discovery()},
			FailClosed: failClosed,
		},
	})
}

// addPolicies enforces ImmutabilityPolicies in every replica.
func (g *gateway) addPolicies(ctx context.Context) error {
	if g.policies == nil || !g.Features.Runs(options.ComponentWebhook) {
		return nil
	}
	informer, err := g.manager.GetCache().GetInformer(ctx, &admissionv1alpha1.ImmutabilityPolicy{})
	if err != nil {
		return err
	}
	if err := g.policies.Follow(informer); err != nil {
		return err
	}
	handler := &immutability.Handler{
		Policies: g.policies.Policies, Live: g.manager.GetAPIReader(), Mapper: g.manager.GetRESTMapper(), Namespaces: g.manager.GetClient(), Writer: g.manager.GetClient(),
		FailClosed: sets.New(g.Webhooks.FailClosedGroups...), Namespace: g.Hub.Namespace, Clock: clock.RealClock{},
	}
	server := g.manager.GetWebhookServer()
	server.Register(immutability.PathPrefix, handler.Serving())
	server.Register(immutability.PathAuthor, &ctrlwebhook.Admission{Handler: &immutability.Author{
		Compiler: g.policies.compiler, Writer: g.manager.GetClient(), Mapper: g.manager.GetRESTMapper(),
	}})
	return g.manager.AddReadyzCheck("policies", func(*http.Request) error {
		if !g.policies.Synced() {
			return errors.New("ImmutabilityPolicies are not read yet")
		}
		return nil
	})
}
