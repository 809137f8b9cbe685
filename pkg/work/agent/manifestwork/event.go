// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/work/engine"
	"fleetgate.io/fleetgate/pkg/work/engine/memberwatch"
	"fleetgate.io/fleetgate/pkg/work/reserved"
)

// foreign is the prefix of the engine's name for an AppliedManifestWork without a ManifestWork of
// this hub. Names of ManifestWorks contain no slash.
const foreign = "record/"

// family decides what holds for all ManifestWorks.
type family struct{ *Reconciler }

var _ engine.Family = family{}

// Reserved implements engine.Family.
func (r family) Reserved(object *unstructured.Unstructured) string {
	return reserved.Why(object, r.options.ReservedNamespaces...)
}

// ReservedNamespace implements engine.Family.
func (family) ReservedNamespace(namespace metav1.Object) string { return reserved.Existing(namespace) }

// WorkOf returns the ManifestWork that a change on the cluster concerns, or the record if it belongs
// to none of this hub.
func (r family) WorkOf(e memberwatch.Event) (client.Object, bool) {
	about := &workv1.ManifestWork{}
	about.Namespace, about.Name = r.options.Cluster, e.Work
	if e.Object.Resource == records() {
		work, ours := strings.CutPrefix(e.Object.Name, r.hash+"-")
		if !ours {
			about.Namespace, work = "", e.Object.Name
		}
		about.Name = work
		return about, r.records.kept.Expects(e.Object.Name, e.Version)
	}
	if record, is := strings.CutPrefix(e.Work, foreign); is {
		about.Namespace, about.Name = "", record
		return about, false
	}
	if r.engine.Expects(e) {
		return about, true
	}
	r.progress.touch(e.Work, e.Object)
	return about, false
}
