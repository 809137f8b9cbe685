// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/placement/helmchart"
	"fleetgate.io/fleetgate/pkg/placement/override"
	"fleetgate.io/fleetgate/pkg/placement/snapshot"
)

// Charts renders charts, as helmchart.Renderer does.
type Charts interface {
	// Manifests returns the rendered manifests of a chart. While the chart is being rendered it returns
	// helmchart.ErrRendering, and queues the waiting request at the Source afterwards.
	Manifests(release *helmchart.Release, waiting reconcile.Request) ([]placementv1beta1.Manifest, error)
	Source() source.Source
}

// renderings are the rendered charts of a binding by Work name.
type renderings map[string]rendering

type rendering struct {
	// from is the value of RenderedFromAnnotation.
	from string
	// kept is true if the Work already has the chart's rendered manifests.
	kept bool
}

// annotate records in Works what their manifests were rendered from.
func (c renderings) annotate(works []*placementv1beta1.Work) {
	for _, w := range works {
		if of, ok := c[w.Name]; ok {
			w.Annotations = maps.Clone(w.Annotations) // The binding's Works share them.
			w.Annotations[placementv1beta1.RenderedFromAnnotation] = of.from
		}
	}
}

func (c renderings) kept(work string) bool { return c[work].kept }

// rendered returns the group with its charts rendered for the member. A part whose Work is already up
// to date comes without manifests, so that a gateway has nothing to render after a start.
func (r *Reconciler) rendered(b placementv1beta1.BindingObject, member *clusterv1beta1.MemberCluster, group *snapshot.Group, have []*placementv1beta1.Work) (*snapshot.Group, renderings, error) {
	charts := renderings{}
	if !slices.ContainsFunc(group.Parts, func(p snapshot.Part) bool { return p.Chart }) {
		return group, charts, nil
	}
	changed := &snapshot.Group{Index: group.Index, Resources: group.Resources, Parts: slices.Clone(group.Parts)}
	var waiting error
	for i := range changed.Parts {
		part := &changed.Parts[i]
		if !part.Chart || len(part.Manifests) == 0 {
			continue // An override can keep a chart off the member.
		}
		name := placementv1beta1.EnvelopeWorkName(b.GetNamespace(), b.GetLabels()[placementv1beta1.ParentPlacementLabel], *part.Envelope)
		of, err := r.render(b, member, part, workNamed(have, name))
		if errors.Is(err, helmchart.ErrRendering) {
			waiting = err
			continue
		}
		if err != nil {
			return nil, nil, ofChart(part.Envelope, err)
		}
		charts[name] = of
	}
	return changed, charts, waiting
}

// ofChart adds the chart to an error, and marks errors that only the chart's author can fix.
func ofChart(e *placementv1beta1.EnvelopeIdentifier, err error) error {
	err = fmt.Errorf("%s %q: %w", e.Type, klog.KRef(e.Namespace, e.Name), err)
	var problem *helmchart.Problem
	if errors.As(err, &problem) {
		return unsent("a chart cannot be rendered: %w", err)
	}
	return fmt.Errorf("rendering %w", err)
}

// render replaces the manifest of a part, which describes a chart, by the rendered manifests.
func (r *Reconciler) render(b placementv1beta1.BindingObject, member *clusterv1beta1.MemberCluster, part *snapshot.Part, have *placementv1beta1.Work) (rendering, error) {
	release, err := helmchart.Read(part.Manifests[0].Raw, override.MemberOf(member), b.GetNamespace())
	if err != nil {
		return rendering{}, &helmchart.Problem{What: err.Error()}
	}
	hash, err := release.Hash()
	if err != nil {
		return rendering{}, err
	}
	if is, ok := alreadyRendered(have, hash); ok {
		part.Manifests, part.Hash = nil, is
		return rendering{from: have.Annotations[placementv1beta1.RenderedFromAnnotation], kept: true}, nil
	}
	part.Manifests, err = r.Charts.Manifests(release, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)})
	if err == nil {
		part.Hash, err = snapshot.Hash(part.Manifests)
	}
	return rendering{from: hash + "." + part.Hash}, err
}

// alreadyRendered returns the hash of a Work's manifests if they were rendered from this release and
// nobody has changed them since.
func alreadyRendered(w *placementv1beta1.Work, release string) (string, bool) {
	if w == nil || w.DeletionTimestamp != nil {
		return "", false
	}
	from, was, ok := strings.Cut(w.Annotations[placementv1beta1.RenderedFromAnnotation], ".")
	is, err := manifestsHash(w)
	return is, ok && err == nil && from == release && was == is
}

func workNamed(works []*placementv1beta1.Work, name string) *placementv1beta1.Work {
	for _, w := range works {
		if w.Name == name {
			return w
		}
	}
	return nil
}

// sameChart rejects overrides that turn a part into a different chart.
func sameChart(part snapshot.Part, before []placementv1beta1.Manifest) error {
	if !part.Chart || len(part.Manifests) == 0 {
		return nil
	}
	return helmchart.ValuesOnly(before[0].Raw, part.Manifests[0].Raw)
}
