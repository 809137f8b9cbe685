// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"fleetgate.io/fleetgate/pkg/work/engine/availability"
	"fleetgate.io/fleetgate/pkg/work/manifest"
)

// Objects that run to completion, as Jobs do, are often deleted afterwards: by the cluster when
// their time is over, or by hand. To make one again is to run it again, which nobody has asked
// for. So the ledger remembers what each has run and how that ended, and with this an object that
// is gone differs from one that never existed. To run it again, change its spec.

// Run is what is known of an object that runs to completion. The zero value: nothing is.
type Run struct {
	// ManifestHash is of what the manifest has run.
	ManifestHash string
	// Result is an [availability.Result]; empty: it was not seen to end.
	Result string
	// Reason is why it ended.
	Reason string
}

// then is what is known after a look. A run that ended stays so: an object that somebody made
// again does not bring another run.
func (r Run) then(now Run) Run {
	if now.ManifestHash == "" || r.ManifestHash == now.ManifestHash && r.Result != "" && now.Result == "" {
		return r
	}
	return now
}

func (r Run) completion() availability.Completion {
	return availability.Completion{Result: availability.Result(r.Result), Reason: r.Reason}
}

// runHash tells runs apart; empty for what does not run to completion. What does not change what
// is run does not count: metadata, and when the object is deleted afterwards.
func runHash(object *unstructured.Unstructured) string {
	if !availability.RunsToCompletion(object) {
		return ""
	}
	spec, _, _ := unstructured.NestedMap(object.Object, "spec")
	spec = maps.Clone(spec)
	delete(spec, "ttlSecondsAfterFinished")
	text, err := manifest.Encode(&unstructured.Unstructured{Object: map[string]any{"kind": object.GetKind(), "spec": spec}})
	if err != nil {
		return "" // it was encoded before
	}
	return manifest.Hash(text)
}

// runOf is what an object says of the run of its manifest.
func (i Item) runOf(object *unstructured.Unstructured) Run {
	if i.run == "" {
		return Run{}
	}
	ended := availability.CompletionOf(object)
	return Run{ManifestHash: i.run, Result: string(ended.Result), Reason: ended.Reason}
}

// runsIn are the entries for items that run to completion.
func runsIn(entries []Entry, items []Item) map[manifest.Key]Entry {
	wanted := map[manifest.Key]bool{}
	for _, it := range items {
		if it.run != "" {
			wanted[it.key()] = true
		}
	}
	runs := map[manifest.Key]Entry{}
	if len(wanted) == 0 {
		return runs
	}
	for _, entry := range entries {
		if key := manifest.KeyOf(entry.Ref); wanted[key] {
			runs[key] = entry
		}
	}
	return runs
}

// ran is the outcome of a manifest that ran to completion and whose object is gone. One that
// expires, and was there, counts as run although nobody saw it end: to run it twice does more harm
// than to ask. So does one that an agent brought which did not remember runs.
func (t task) ran(ctx context.Context, it Item) (Outcome, bool) {
	if it.run == "" {
		return Outcome{}, false
	}
	known := t.runs[it.key()]
	if known.UID == "" && known.Run == (Run{}) && t.ranBefore != nil {
		var err error
		if known.Run, err = t.ranBefore(ctx, it.key()); err != nil {
			return Outcome{Ref: it.Ref, Holds: true, Err: err}, true
		}
	}
	out := Outcome{Ref: it.Ref, Holds: true, run: known.Run}
	switch isThis := known.Run.ManifestHash == it.run; {
	case isThis && known.Run.Result != "":
		out.Availability = known.Run.completion().Gone(it.Ref.Kind)
	case known.UID != "" && it.expires && (isThis || known.Run.ManifestHash == ""):
		out.Availability, out.run = availability.GoneUnseen(it.Ref.Kind), Run{ManifestHash: it.run}
	default:
		return Outcome{}, false
	}
	return out, true
}

// keepRuns keeps the entries of what ran to completion and now belongs to another work, which has
// perhaps not asked yet: it finds there that it has run.
func (r *Removal) keepRuns(ctx context.Context, left []Entry, heirOf HeirFinder) {
	for _, entry := range left {
		key := manifest.KeyOf(entry.Ref)
		if entry.Run.Result == "" || !r.gone[key] {
			continue
		}
		if heir, err := heirOf.find(ctx, entry); heir != nil || err != nil {
			delete(r.gone, key) // an error is that of the next look too
		}
	}
}

// endedAndGoes reports whether an object of ours that is being deleted has run its manifest to
// completion: nothing is to be done about it.
func (t task) endedAndGoes(it Item, live *unstructured.Unstructured) bool {
	if it.run == "" || live.GetDeletionTimestamp() == nil || !availability.CompletionOf(live).Ended() {
		return false
	}
	standing, known := StandingOf(live.GetOwnerReferences(), t.owner), t.runs[it.key()]
	ranThis := known.UID == live.GetUID() && (known.Run.ManifestHash == it.run || known.Run.ManifestHash == "")
	return ranThis && standing.Ours && t.may(standing, it.object) == nil
}
