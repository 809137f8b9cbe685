// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAStrategyIsCompletedAndNothingOfItChanged(t *testing.T) {
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
		"none":              {nil, whole},
		"nothing in it":     {&ApplyStrategy{}, whole},
		"on the server":     {&ApplyStrategy{Type: ServerSideApply}, with(func(s *ApplyStrategy) { s.Type, s.ServerSideApplyConfig = ServerSideApply, &ServerSideApplyConfig{} })},
		"what is said":      {&ApplyStrategy{WhenToApply: ApplyIfNotDrifted}, with(func(s *ApplyStrategy) { s.WhenToApply = ApplyIfNotDrifted })},
		"sharing":           {&ApplyStrategy{AllowCoOwnership: true}, with(func(s *ApplyStrategy) { s.AllowCoOwnership = true })},
		"complete already":  {&whole, whole},
		"only reported":     {&ApplyStrategy{Type: ReportDiff}, with(func(s *ApplyStrategy) { s.Type = ReportDiff })},
		"compared as whole": {&ApplyStrategy{ComparisonOption: FullComparison}, with(func(s *ApplyStrategy) { s.ComparisonOption = FullComparison })},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.given.DeepCopy()
			if diff := cmp.Diff(tc.want, tc.given.WithDefaults()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.given); diff != "" {
				t.Errorf("it was changed itself:\n%s", diff)
			}
		})
	}
}
