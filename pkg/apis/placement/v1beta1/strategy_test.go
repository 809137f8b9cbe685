// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestApplyStrategyWithDefaults_SetsOnlyUnsetFields(t *testing.T) {
	whole := ApplyStrategy{
		Type: ClientSideApply, ComparisonOption: PartialComparison, WhenToApply: ApplyAlways, WhenToTakeOver: TakeOverAlways,
	}
	with := func(change func(*ApplyStrategy)) ApplyStrategy {
		s := whole
		change(&s)
		return s
	}
	for name, tc := range map[string]struct {
		given *ApplyStrategy
		want  ApplyStrategy
	}{
		"nil":              {nil, whole},
		"empty strategy":   {&ApplyStrategy{}, whole},
		"server-side":      {&ApplyStrategy{Type: ServerSideApply}, with(func(s *ApplyStrategy) { s.Type, s.ServerSideApplyConfig = ServerSideApply, &ServerSideApplyConfig{} })},
		"drift policy set": {&ApplyStrategy{WhenToApply: ApplyIfNotDrifted}, with(func(s *ApplyStrategy) { s.WhenToApply = ApplyIfNotDrifted })},
		"co-ownership":     {&ApplyStrategy{AllowCoOwnership: true}, with(func(s *ApplyStrategy) { s.AllowCoOwnership = true })},
		"all fields set":   {&whole, whole},
		"report only":      {&ApplyStrategy{Type: ReportDiff}, with(func(s *ApplyStrategy) { s.Type = ReportDiff })},
		"full comparison":  {&ApplyStrategy{ComparisonOption: FullComparison}, with(func(s *ApplyStrategy) { s.ComparisonOption = FullComparison })},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.given.DeepCopy()
			if diff := cmp.Diff(tc.want, tc.given.WithDefaults()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.given); diff != "" {
				t.Errorf("WithDefaults changed its receiver:\n%s", diff)
			}
		})
	}
}
