// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/engine"
)

func TestProgress(t *testing.T) {
	now := early.Time
	t.Run("a Work from a cache that has not seen our write is behind", func(t *testing.T) {
		m := &progress{}
		if m.own.IsBehind("9", now) {
			t.Error("it is behind before anything was written")
		}
		m.own.Note("10", now)
		for version, want := range map[string]bool{"9": true, "10": false, "11": false, "unknown": false} {
			if m.own.IsBehind(version, now.Add(time.Second)) != want {
				t.Errorf("resourceVersion %s is behind 10: %t", version, !want)
			}
		}
		if m.own.IsBehind("9", now.Add(time.Minute)) {
			t.Error("it stays behind indefinitely")
		}
	})
}

func TestAbout_ExpectsOwnWritesOfRecords(t *testing.T) {
	kept := engine.NewRecordCache[*placementv1beta1.AppliedWork](nil, testingclock.NewFakePassiveClock(early.Time))
	kept.Keep("work", &placementv1beta1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: "work", ResourceVersion: "90"}})
	for name, tc := range map[string]struct {
		work, version string
		want          bool
	}{
		"our record, made":       {"work", "80", true},
		"our record, written":    {"work", "90", true},
		"our record, by another": {"work", "91", false},
		"our record, gone":       {"work", "", false},
		"another Work's":         {"other", "80", false},
	} {
		if kept.Expects(tc.work, tc.version) != tc.want {
			t.Errorf("%s is expected: %t", name, !tc.want)
		}
	}
}
