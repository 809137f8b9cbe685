// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
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

// part is a part of the snapshots as the member gets it.
type part struct {
	snapshot.Part
	// renderedFrom and renderedFor are the values of the annotations of a chart, or "".
	renderedFrom, renderedFor string
	// keepManifests is true if the existing Work has the rendered manifests, and the part does not.
	keepManifests bool
	// piece is the number, from 0, of a part that was divided because its Works would be too large.
	piece int
}

// transform applies overrides and renders charts for one member.
type transform struct {
	input
	overrides override.Set
	charts    Charts
}

// apply returns the parts for the member. It keeps empty parts: an empty Work removes resources from the
// member, and without the part another Work could take its name. All charts are rendered at a time: the
// error is helmchart.ErrRendering until the last one is ready.
func (t transform) apply(all []snapshot.Part) ([]part, error) {
	parts := make([]part, len(all))
	for i := range all {
		parts[i].Part = all[i]
		if err := t.override(&parts[i]); err != nil {
			return nil, err
		}
	}
	var waiting error
	for i := range parts {
		switch err := t.render(&parts[i]); {
		case errors.Is(err, helmchart.ErrRendering):
			waiting = err
		case err != nil:
			return nil, ofChart(parts[i].Envelope, err)
		}
	}
	return parts, waiting
}

func (t transform) override(p *part) (err error) {
	if len(t.overrides) == 0 {
		return nil
	}
	before := p.Manifests
	p.Manifests, err = t.overrides.Apply(before, override.MemberOf(t.member))
	if err == nil && p.Chart && len(p.Manifests) > 0 {
		err = helmchart.ValuesOnly(before[0].Raw, p.Manifests[0].Raw)
	}
	switch {
	case refusal.Of(err) != nil:
		return err // The rules fit and their result does not: the Work reports it.
	case err != nil:
		return misfit(err)
	}
	p.Hash, err = snapshot.Hash(p.Manifests)
	return err
}

// render replaces the manifest of a part that describes a chart by the rendered manifests. If the Work
// is up to date, the part gets none, so that a gateway has nothing to render after a start.
func (t transform) render(p *part) error {
	if !p.Chart || len(p.Manifests) == 0 {
		return nil // An override can keep a chart off the member.
	}
	release, err := helmchart.Read(p.Manifests[0].Raw, override.MemberOf(t.member), t.binding.GetNamespace())
	if err != nil {
		return &helmchart.Problem{What: err.Error()}
	}
	hash, err := release.Hash()
	if err != nil {
		return err
	}
	if p.renderedFor, err = release.MemberHash(); err != nil {
		return err
	}
	existing := workNamed(t.works, envelopeWork(t.binding, p.Envelope))
	if rendered, ok := alreadyRendered(existing, hash); ok {
		p.Manifests, p.Hash, p.keepManifests = nil, rendered, true
	} else {
		if p.Manifests, err = t.charts.Manifests(release, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(t.binding)}); err != nil {
			return err
		}
		if p.Hash, err = snapshot.Hash(p.Manifests); err != nil {
			return err
		}
	}
	p.renderedFrom = hash + "." + p.Hash
	return nil
}

// alreadyRendered returns the hash of a Work's manifests if they were rendered from this release and
// nobody has changed them since.
func alreadyRendered(w *placementv1beta1.Work, release string) (string, bool) {
	if w == nil || w.DeletionTimestamp != nil {
		return "", false
	}
	from, rendered, ok := strings.Cut(w.Annotations[placementv1beta1.RenderedFromAnnotation], ".")
	hash, err := manifestsHash(w)
	return hash, ok && err == nil && from == release && rendered == hash
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
