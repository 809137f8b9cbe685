// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	"fleetgate.io/fleetgate/pkg/work/engine"
)

// write applies or compares the planned manifests. If the Work also defines a kind, it waits once
// per generation until the member serves that kind, and applies again.
func (r *Reconciler) write(ctx context.Context, p *planned) (engine.Result, error) {
	if p.refused != nil {
		//lint:ignore nilerr Each item reports the refusal.
		return engine.RefuseAll(p.items, p.refused), nil
	}
	if p.way.By == engine.Compare {
		result := r.engine.Compare(ctx, p.job, p.items)
		engine.Blame(result.Outcomes, p.cannot)
		return result, nil
	}
	result := r.engine.Bring(ctx, p.job, p.items)
	if r.turns.of(p.work.Name).isNew(p.work.Generation) && r.engine.AwaitKinds(ctx, p.items, result.Outcomes) {
		var err error
		if p.items, err = r.items(p.work, p.way); err != nil {
			return engine.Result{}, err
		}
		result = r.engine.Bring(ctx, p.job, p.items)
	}
	engine.Blame(result.Outcomes, p.cannot)
	return result, nil
}
