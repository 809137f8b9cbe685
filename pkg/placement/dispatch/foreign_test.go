// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/snapshot"
)

func TestBelongsTo_LimitsNamespacedPlacement(t *testing.T) {
	scopes := func(kind schema.GroupVersionKind) (namespaced, known bool, err error) {
		switch kind.Kind {
		case "ConfigMap":
			return true, true, nil
		case "ClusterRole":
			return false, true, nil
		case "Broken":
			return false, false, errors.New("no discovery")
		}
		return false, false, nil
	}
	plain := func(kind, namespace string) snapshot.Part {
		return snapshot.Part{Resources: []placementv1beta1.ResourceIdentifier{{Version: "v1", Kind: kind, Namespace: namespace, Name: "x"}}}
	}
	enveloped := func(kind, namespace string) snapshot.Part {
		part := plain(kind, namespace)
		part.Envelope = &placementv1beta1.EnvelopeIdentifier{Name: "e", Namespace: "shop"}
		return part
	}
	chart := func(text string) snapshot.Part {
		part := enveloped("ConfigMap", "shop")
		part.Chart, part.Manifests = true, manifests(text)
		return part
	}
	cases := map[string]struct {
		namespace string
		part      snapshot.Part
		want      string
	}{
		"own namespace":                                   {"shop", plain("ConfigMap", "shop"), ""},
		"other namespace":                                 {"shop", plain("ConfigMap", "kube-system"), `is of namespace "kube-system"`},
		"cluster-scoped object":                           {"shop", plain("ClusterRole", ""), `is of namespace ""`},
		"cluster-scoped object with a namespace":          {"shop", plain("ClusterRole", "shop"), "is of the whole cluster"},
		"cluster-scoped object in an envelope":            {"shop", enveloped("ClusterRole", "shop"), "is of the whole cluster"},
		"unknown kind in an envelope":                     {"shop", enveloped("Gadget", "shop"), ""},
		"unknown kind outside of an envelope":             {"shop", plain("Gadget", "shop"), "no longer serves the kind"},
		"failed lookup of a kind":                         {"shop", plain("Broken", "shop"), "no discovery"},
		"rendered object in the own namespace":            {"shop", chart(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"shop"}}`), ""},
		"rendered object in another namespace":            {"shop", chart(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"other"}}`), `is of namespace "other"`},
		"chart that is not rendered again":                {"shop", snapshot.Part{Chart: true}, ""},
		"cluster-scoped placement, cluster-scoped object": {"", plain("ClusterRole", ""), ""},
		"cluster-scoped placement, namespaced object":     {"", plain("ConfigMap", "kube-system"), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := belongsTo(tc.namespace, []part{{Part: tc.part}}, scopes)
			if (tc.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
