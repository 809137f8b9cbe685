// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	"fleetgate.io/fleetgate/pkg/work/engine"
)

// apply applies or compares the planned manifests. If the Work also defines a kind, it waits once
// per generation until the member serves that kind, and applies again.
func (r *Reconciler) apply(ctx context.Context, p *planned) (engine.Result, error) {
	if p.refused != nil {
		//lint:ignore nilerr Each item reports the refusal.
		return engine.RefuseAll(p.items, p.refused), nil
	}
	if p.mode.Method == engine.Compare {
		result := r.engine.Compare(ctx, p.job, p.items)
		engine.NameAccount(result.Manifests, p.cannot)
		return result, nil
	}
	result := r.engine.Apply(ctx, p.job, p.items)
	if r.throttle.of(p.work.Name).isNew(p.work.Generation) && r.engine.AwaitKinds(ctx, p.items, result.Manifests) {
		var err error
		if p.items, err = r.items(p.work, p.mode); err != nil {
			return engine.Result{}, err
		}
		result = r.engine.Apply(ctx, p.job, p.items)
	}
	engine.NameAccount(result.Manifests, p.cannot)
	return result, nil
}
