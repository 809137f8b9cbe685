// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	"context"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/event"

	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/pkg/work/engine/memberwatch"
)

// foreign begins the engine's name for an AppliedManifestWork that is of no ManifestWork of
// this hub. No ManifestWork has a slash in its name.
const foreign = "record/"

// touch has a ManifestWork looked at because of a change on the cluster that is not ours.
func (r *Reconciler) touch(ctx context.Context, e memberwatch.Event) {
	about := &workv1.ManifestWork{}
	about.Namespace, about.Name = r.options.Cluster, e.Work
	expected := false
	if e.Object.Resource == records() {
		work, ours := strings.CutPrefix(e.Object.Name, r.hash+"-")
		if !ours {
			about.Namespace, work = "", e.Object.Name
		}
		about.Name, expected = work, r.records.kept.Expects(e.Object.Name, e.Version)
	} else if record, is := strings.CutPrefix(e.Work, foreign); is {
		about.Namespace, about.Name = "", record
	} else {
		expected = r.engine.Expects(e)
	}
	if expected {
		return
	}
	if e.NewKind {
		r.progress.retries.Forget(e.Work)
		r.engine.ForgetPlan(e.Work)
	}
	select {
	case r.touched <- event.GenericEvent{Object: about}:
	case <-ctx.Done():
	}
}
