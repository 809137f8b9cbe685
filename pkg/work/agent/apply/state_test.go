// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/retention"
)

func workAt(uid types.UID, generation int64) *placementv1beta1.Work {
	return workNaming("w", "b", "1", func(work *placementv1beta1.Work) { work.UID, work.Generation = uid, generation })
}

// inEpoch returns a Work with an epoch on the hub.
func inEpoch(work *placementv1beta1.Work, epoch string) *placementv1beta1.Work {
	metav1.SetMetaDataAnnotation(&work.ObjectMeta, placementv1beta1.EpochAnnotation, epoch)
	return work
}

func TestSee(t *testing.T) {
	at := time.Date(2026, 1, 1, 11, 55, 0, 0, time.UTC)
	const early, late = "2026-01-01T10:00:00Z", "2026-01-01T11:00:00Z"
	now := retention.Mark{Since: at.Format(time.RFC3339), ID: "new"}
	another := retention.Mark{Since: now.Since, ID: "new", Another: true}
	cases := map[string]struct {
		cached, live *placementv1beta1.Work
		// record has the annotations of the record: observed Work, epoch and mark of retention.
		record   []string
		released []string
		want     state
		behind   bool
	}{
		"no record":                                {cached: workAt("u", 3), want: state{work: "u/3"}},
		"a record of an earlier agent":             {cached: workAt("u", 3), record: []string{"", "", ""}, want: state{work: "u/3"}},
		"an unchanged Work":                        {cached: workAt("u", 3), record: []string{"u/3", "", ""}, want: state{work: "u/3"}},
		"a later generation, which costs no write": {cached: workAt("u", 5), record: []string{"u/3", "", ""}, want: state{work: "u/3"}},
		"an earlier generation":                    {cached: workAt("u", 2), live: workAt("u", 2), record: []string{"u/3", "", ""}, want: state{"u/2", "", now}},
		"an earlier generation in the cache only":  {cached: workAt("u", 2), live: workAt("u", 3), record: []string{"u/3", "", ""}, behind: true},
		"another UID":                              {cached: workAt("v", 9), live: workAt("v", 9), record: []string{"u/3", "", ""}, want: state{"v/9", "", another}},
		"another UID after the Work disappeared":   {cached: workAt("v", 9), live: workAt("v", 9), record: []string{"u/3", "", late + "/id"}, want: state{"v/9", "", now}},
		"another UID in the cache only":            {cached: workAt("v", 9), live: workAt("u", 3), record: []string{"u/3", "", ""}, behind: true},

		"the recorded epoch":                     {cached: inEpoch(workAt("u", 6), "6/1"), record: []string{"u/6", "6/1", ""}, want: state{work: "u/6", epoch: "6/1"}},
		"an epoch that is not on the member yet": {cached: inEpoch(workAt("u", 7), "7/3"), record: []string{"u/6", "6/1", ""}, want: state{work: "u/6", epoch: "6/1"}},
		"a restored Work that reached the recorded generation again": {
			cached: inEpoch(workAt("u", 6), "4/1"), live: inEpoch(workAt("u", 6), "4/1"), record: []string{"u/6", "6/2", ""}, want: state{"u/6", "4/1", now}},
		"a restored Work beyond the recorded generation": {
			cached: workAt("u", 9), live: workAt("u", 9), record: []string{"u/6", "6/2", ""}, want: state{"u/9", "", now}},
		"a Work restored from two backups in turn": {
			cached: inEpoch(workAt("u", 6), "6/9"), live: inEpoch(workAt("u", 6), "6/9"), record: []string{"u/6", "6/2", ""}, want: state{"u/6", "6/9", now}},
		"an epoch that the cache lacks": {cached: workAt("u", 6), live: inEpoch(workAt("u", 6), "6/2"), record: []string{"u/6", "6/2", ""}, behind: true},

		"retained objects":                           {cached: workAt("u", 5), record: []string{"u/3", "", late + "/id"}, want: state{"u/3", "", retention.Mark{Since: late, ID: "id"}}},
		"retained objects of a replaced Work":        {cached: workAt("u", 5), record: []string{"u/3", "", late + "/id/another-work"}, want: state{"u/3", "", retention.Mark{Since: late, ID: "id", Another: true}}},
		"released objects":                           {cached: workAt("u", 5), record: []string{"u/3", "", early + "/id"}, released: []string{"other", "id"}, want: state{work: "u/3"}},
		"a release of another id":                    {cached: workAt("u", 5), record: []string{"u/3", "", late + "/id"}, released: []string{"other"}, want: state{"u/3", "", retention.Mark{Since: late, ID: "id"}}},
		"a release by a time, for a mark with an id": {cached: workAt("u", 5), record: []string{"u/3", "", late + "/id"}, released: []string{"2026-01-01T12:00:00Z"}, want: state{"u/3", "", retention.Mark{Since: late, ID: "id"}}},
		"another restore after a release":            {cached: workAt("u", 1), live: workAt("u", 1), record: []string{"u/3", "", early + "/id"}, released: []string{"id"}, want: state{"u/1", "", now}},
		"a restore while the member's clock is behind the last release": {
			cached: workAt("u", 1), live: workAt("u", 1), record: []string{"u/3", "", ""}, released: []string{"2026-01-01T12:00:00Z"}, want: state{"u/1", "", now}},

		"a mark of an earlier agent":                              {cached: workAt("u", 5), record: []string{"u/3", "", late}, want: state{"u/3", "", retention.Mark{Since: late, ID: "new"}}},
		"a mark of an earlier agent, released by a later time":    {cached: workAt("u", 5), record: []string{"u/3", "", early}, released: []string{late}, want: state{work: "u/3"}},
		"a mark of an earlier agent, released by an earlier time": {cached: workAt("u", 5), record: []string{"u/3", "", late}, released: []string{early}, want: state{"u/3", "", retention.Mark{Since: late, ID: "new"}}},
		"a mark of an earlier agent with an invalid time":         {cached: workAt("u", 3), record: []string{"u/3", "", "long ago"}, released: []string{late}, want: state{"u/3", "", retention.Mark{Since: "long ago", ID: "new"}}},

		"a record with an invalid annotation": {cached: workAt("u", 1), record: []string{"nonsense", "", ""}, want: state{work: "nonsense"}},
		"a record with an invalid generation": {cached: workAt("u", 1), record: []string{"u/x", "", ""}, want: state{work: "u/x"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var r *Reconciler
			if tc.live != nil {
				r = reconcilerWith(t, tc.live)
			} else {
				r = reconcilerWith(t) // so that a request to the hub fails
			}
			r.options.Clock = testingclock.NewFakePassiveClock(at)
			r.options.Retention = retention.NewTrackerWithIDs(nil, func() string { return "new" })
			var record *placementv1beta1.AppliedWork
			if tc.record != nil {
				record = &placementv1beta1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{}}}
				for i, key := range []string{ObservedWorkAnnotation, placementv1beta1.EpochAnnotation, retention.Annotation} {
					if tc.record[i] != "" {
						record.Annotations[key] = tc.record[i]
					}
				}
			}
			m := membership{id: "m", released: tc.released}
			got, err := r.compareState(t.Context(), tc.cached, m)(record)
			if errors.Is(err, errBehind) != tc.behind || err != nil && !tc.behind {
				t.Fatalf("the error is %v", err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(state{})); diff != "" {
				t.Errorf("what is seen (-want +got):\n%s", diff)
			}
			if got.retained.IsReleased(m.released) {
				t.Error("a release of another id releases the objects")
			}
		})
	}
}

// grown returns a bed with a Work that got another object after it was applied.
func grown(t *testing.T, refuse error) *bed {
	t.Helper()
	b := newBed(t, Options{}, newWork("work", nil, manifestA("1")))
	hub, is := b.hub.(client.WithWatch)
	if !is {
		t.Fatal("the hub cannot be watched")
	}
	b.reconciler.hub = interceptor.NewClient(hub, interceptor.Funcs{
		Patch: func(ctx context.Context, hub client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if object.GetAnnotations()[placementv1beta1.EpochAnnotation] != "" && refuse != nil {
				return refuse
			}
			return hub.Patch(ctx, object, patch, options...)
		}})
	b.look("work")
	b.change("work", func(work *placementv1beta1.Work) { work.Spec.Workload.Manifests = raw(manifestA("1"), manifestSecret) })
	b.log.Reset()
	b.look("work")
	return b
}

func TestNoteGrowth_WritesTheEpochOnTheHubFirstAndObjectsLast(t *testing.T) {
	b := grown(t, nil)
	hub, member := b.work("work").Annotations[placementv1beta1.EpochAnnotation], b.member.objects[recordPath("work")].GetAnnotations()
	if !strings.HasPrefix(hub, "2/") || member[placementv1beta1.EpochAnnotation] != hub || member[ObservedWorkAnnotation] != "of-work/2" {
		t.Errorf("the hub has %q, the member %v", hub, member)
	}
	lines := strings.Split(b.log.String(), "\n")
	at := func(what string) int {
		return slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, what) })
	}
	if first, second, third := at("PATCH Work work on the hub"), at("PATCH "+recordPath("work")), at("POST /api/v1/namespaces/ns/secrets"); first < 0 || first > second || second > third {
		t.Errorf("wrong order:\n%s", b.log)
	}
	b.log.Reset()
	b.look("work")
	if strings.Contains(b.log.String(), "PATCH Work") {
		t.Errorf("an unnecessary epoch was begun:\n%s", b.log)
	}
}

func TestNoteGrowth_AppliesNewObjectsWithoutAnEpochWhenTheHubForbidsIt(t *testing.T) {
	b := grown(t, apierrors.NewForbidden(schema.GroupResource{Resource: "works"}, "work", errors.New("only the hub writes them")))
	if b.member.objects[pathSecret] == nil {
		t.Errorf("the new object does not exist:\n%s", b.log)
	}
	if member := b.member.objects[recordPath("work")].GetAnnotations(); member[placementv1beta1.EpochAnnotation] != "" || member[ObservedWorkAnnotation] != "of-work/2" {
		t.Errorf("the member has %v", member)
	}
}

func TestNoteGrowth_AppliesNoNewObjectWhenTheHubIsUnreachable(t *testing.T) {
	b := grown(t, apierrors.NewServiceUnavailable("restoring"))
	if b.member.objects[pathSecret] != nil {
		t.Errorf("the new object exists without an epoch on the hub:\n%s", b.log)
	}
}

func TestSeenOn_ReadsThePreviousKeyFirst(t *testing.T) {
	const current, previous = ObservedWorkAnnotation, deprecatedObservedWorkAnnotation
	for name, tc := range map[string]struct {
		annotations map[string]string
		isMarked    bool
	}{
		"as this agent writes it":                     {map[string]string{current: "u/3", previous: "u/3"}, true},
		"as the previous agent left it":               {map[string]string{previous: "u/3"}, false},
		"after a rollback to the previous agent":      {map[string]string{current: "u/2", previous: "u/3"}, false},
		"as an agent without the previous key has it": {map[string]string{current: "u/3"}, true},
	} {
		record := &placementv1beta1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}}
		want := state{work: "u/3"}
		if got := stateOn(record); got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
		if got := want.isMarkedOn(record); got != tc.isMarked {
			t.Errorf("%s: the record is marked: %t, want %t", name, got, tc.isMarked)
		}
		want.mark(record)
		if record.Annotations[current] != "u/3" || record.Annotations[previous] != "u/3" {
			t.Errorf("%s: the record is marked with %v", name, record.Annotations)
		}
	}
}
