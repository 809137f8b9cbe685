// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/webhook/policies"
)

func TestOnlyTheChosenPartsAreInstalled(t *testing.T) {
	const always, definitions, limit, placements, rails, confirmed, reviewed = "member-secrets", "definitions", "gateway-account", "deliveries", "selected-workloads",
		"confirm-delete-placements", policies.ValidatingConfiguration
	all := []string{always, definitions, limit, placements, rails, confirmed, reviewed}
	chosen := func(change func(*Admission)) Admission {
		a := Admission{GuardRails: policies.GuardRailsSelected, ConfirmDelete: policies.ConfirmDeleteWarn, Fleet: true, Reviewed: true}
		change(&a)
		return a
	}
	for name, test := range map[string]struct {
		admission        Admission
		wanted, obsolete []string
	}{
		"everything":                   {chosen(func(*Admission) {}), all, nil},
		"an administrator":             {chosen(func(a *Admission) { a.Administrator = true }), without(all, limit), []string{limit}},
		"no guard rails":               {chosen(func(a *Admission) { a.GuardRails = policies.GuardRailsOff }), without(all, rails), []string{rails}},
		"deletions without a warning":  {chosen(func(a *Admission) { a.ConfirmDelete = policies.ConfirmDeleteOff }), without(all, confirmed), []string{confirmed}},
		"no webhooks in this process":  {chosen(func(a *Admission) { a.Reviewed = false }), without(all, reviewed), nil},
		"no placements, only accounts": {chosen(func(a *Admission) { a.Fleet = false }), []string{always, definitions, limit}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			wanted, obsolete := namesOf(test.admission.Wanted(Endpoint{Aggregated: true})), namesOf(test.admission.Obsolete())
			for _, part := range all {
				of := part
				if part != reviewed {
					of = "fleetgate-" + part
				}
				if got, want := slices.Contains(wanted, of), slices.Contains(test.wanted, part); got != want {
					t.Errorf("%s is wanted: %v, it should be %v", of, got, want)
				}
				if got, want := slices.Contains(obsolete, of), slices.Contains(test.obsolete, part); got != want {
					t.Errorf("%s is obsolete: %v, it should be %v", of, got, want)
				}
			}
		})
	}
}

func without(all []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == one })
}

func namesOf(objects []client.Object) []string {
	var names []string
	for _, object := range objects {
		names = append(names, object.GetName())
	}
	return names
}
