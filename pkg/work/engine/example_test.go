// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/controller/refusal"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/engine/memberwatch"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// A family can store its ledgers anywhere.
type inMemory struct{ entries []engine.Entry }

func (l *inMemory) Entries() []engine.Entry { return l.entries }

func (l *inMemory) Write(_ context.Context, entries []engine.Entry) error {
	l.entries = entries
	return nil
}

// A family reserves nothing. It does not reconcile a work again after a change on the member.
type family struct{}

func (family) Reserved(*unstructured.Unstructured) string     { return "" }
func (family) ReservedNamespace(metav1.Object) string         { return "" }
func (family) WorkOf(memberwatch.Event) (client.Object, bool) { return nil, true }

// An owner that takes over no object.
type keeper struct{ engine.DefaultOwner }

func (keeper) MayWrite(_ context.Context, owners engine.Ownership, _ *unstructured.Unstructured) *refusal.Refusal {
	if owners.Ours {
		return nil
	}
	return &refusal.Refusal{Reason: engine.NotTakenOver, Message: "The object existed before"}
}

// A family whose works are recorded as Parcels applies a manifest to a member.
func ExampleEngine() {
	apply := func(ctx context.Context, config *rest.Config, owner metav1.OwnerReference, text []byte) error {
		member, err := engine.NewMember(config)
		if err != nil {
			return err
		}
		parcels := member.For(engine.Dialect{
			Manager: "parcels",
			Waves:   manifest.DependencyWaves(),
		}, engine.Options{
			Tuning:  engine.Tuning{}.WithDefaults(),
			Retries: engine.NewRetries(),
			Records: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "parcels"},
		}, family{})
		items, err := parcels.Plan("first", [][]byte{text})
		if err != nil {
			return err
		}
		result := parcels.Apply(ctx, engine.Work{
			Name: "first", Record: owner, Owner: keeper{}, Ledger: &inMemory{},
		}, engine.WithMode(items, engine.Mode{Method: engine.ServerSide}))
		for _, out := range result.Manifests {
			if out.Refused != nil {
				fmt.Println(out.Ref, out.Refused.Message)
			}
		}
		return result.Err
	}
	_ = apply // The program also runs member.Watcher, to see changes on the member.
}
