// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	"fleetgate.io/fleetgate/pkg/work/engine"
)

// write brings what was planned to the member, or compares it. If a kind is defined by the
// same Work, it waits for it once for each generation and goes on.
func (r *Reconciler) write(ctx context.Context, p *planned) (engine.Result, error) {
	if p.refused != nil {
		//lint:ignore nilerr It is told of each item.
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
