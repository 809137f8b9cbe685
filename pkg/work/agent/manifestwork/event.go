// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/work/engine/memberwatch"
)

// foreign begins the engine's name for an AppliedManifestWork that is of no ManifestWork of
// this hub. No ManifestWork has a slash in its name.
const foreign = "record/"

// about is the ManifestWork, or the record of none of this hub, that something on the cluster
// is about.
func (r *Reconciler) about(e memberwatch.Event) (client.Object, bool) {
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
