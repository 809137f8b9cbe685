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

// Charts renders charts; *helmchart.Renderer is one.
type Charts interface {
	// Manifests returns what a chart renders to, or helmchart.ErrRendering, and queues
	// who waits at the Source when that is known.
	Manifests(release *helmchart.Release, waiting reconcile.Request) ([]placementv1beta1.Manifest, error)
	Source() source.Source
}

// renderings are the charts of a binding by the names of their Works.
type renderings map[string]rendering

type rendering struct {
	// from is RenderedFromAnnotation.
	from string
	// kept says that the Work has what the chart renders to already.
	kept bool
}

// annotate writes into Works from what they were rendered.
func (c renderings) annotate(works []*placementv1beta1.Work) {
	for _, w := range works {
		if of, ok := c[w.Name]; ok {
			w.Annotations = maps.Clone(w.Annotations) // The binding's Works share them.
			w.Annotations[placementv1beta1.RenderedFromAnnotation] = of.from
		}
	}
}

func (c renderings) kept(work string) bool { return c[work].kept }

// rendered returns the group with what its charts render to for the member. A part of which
// the Work has that already comes without manifests: a gateway that has just started has
// nothing to render.
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
			continue // An override may keep a chart off the member.
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

// ofChart says of which chart an error is, and whether its author has to do something.
func ofChart(e *placementv1beta1.EnvelopeIdentifier, err error) error {
	err = fmt.Errorf("%s %q: %w", e.Type, klog.KRef(e.Namespace, e.Name), err)
	var problem *helmchart.Problem
	if errors.As(err, &problem) {
		return unsent("a chart cannot be rendered: %w", err)
	}
	return fmt.Errorf("rendering %w", err)
}

// render replaces the manifest of a part, which describes a chart, by what that renders to.
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

// alreadyRendered returns the hash of a Work's manifests if they came of what is to be
// rendered, and nobody has changed them since.
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

// sameChart refuses overrides of a part that make another chart of it.
func sameChart(part snapshot.Part, before []placementv1beta1.Manifest) error {
	if !part.Chart || len(part.Manifests) == 0 {
		return nil
	}
	return helmchart.ValuesOnly(before[0].Raw, part.Manifests[0].Raw)
}
