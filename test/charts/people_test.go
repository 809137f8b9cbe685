// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

// TestRolesForPeopleGiveNothingAway checks that only the administrator's role can read objects with
// placed Secrets; that no role has the verbs place and bypass or reaches a member; and that only
// harmless rules are aggregated to view, edit and admin.
func TestRolesForPeopleGiveNothingAway(t *testing.T) {
	for name, tc := range map[string]struct {
		set                string
		roles, partsOfView []string
	}{
		"by default":                           {"replicas=2", allRolesForPeople()[:4], []string{"fleetgate-viewer"}},
		"with Open Cluster Management's kinds": {"apis={fleet,ocm}", allRolesForPeople(), []string{"fleetgate-viewer", "fleetgate-ocm-viewer"}},
		"unless nobody wants them":             {"rbac.people=false", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			rendered, err := render(t, "gateway", hubAccess, "--set="+tc.set)
			if err != nil {
				t.Fatal(err)
			}
			giveNothingAway(t, rendered, tc.roles, tc.partsOfView)
		})
	}
}

// giveNothingAway checks the rendered roles for people, which must be these.
func giveNothingAway(t *testing.T, rendered string, roles, partsOfView []string) {
	t.Helper()
	holdsSecrets := []string{"snapshots", "bindings", "works", "overrides", "envelopes"}
	var names, aggregated []string
	for document := range strings.SplitSeq(rendered, "\n---\n") {
		role := &rbacv1.ClusterRole{}
		unmarshal(t, document, role)
		if role.Kind != "ClusterRole" || !slices.Contains(allRolesForPeople(), role.Name) {
			continue
		}
		names = append(names, role.Name)
		for label := range role.Labels {
			if strings.Contains(label, "aggregate-to-") {
				aggregated = append(aggregated, role.Name+" "+label)
			}
		}
		for _, rule := range role.Rules {
			for _, verb := range rule.Verbs {
				if slices.Contains([]string{"*", "place", "render", "bypass", "escalate", "bind", "impersonate"}, verb) {
					t.Errorf("%s holds the verb %s", role.Name, verb)
				}
				if verb == "set-identity" && role.Name != "fleetgate-admin" {
					t.Errorf("%s may make somebody a member's agent", role.Name)
				}
			}
			for _, resource := range rule.Resources {
				everything := resource == "*" && role.Name != "fleetgate-admin"
				inClear := resource != "managedclustersetbindings" && slices.ContainsFunc(holdsSecrets, func(kind string) bool { return strings.HasSuffix(resource, kind) }) &&
					role.Name != "fleetgate-admin" && role.Name != "fleetgate-author"
				if everything || inClear || strings.HasSuffix(resource, "/proxy") || resource == "secrets" {
					t.Errorf("%s reaches %s", role.Name, resource)
				}
			}
		}
	}
	if diff := cmp.Diff(roles, names); diff != "" {
		t.Errorf("other roles (-want +got):\n%s", diff)
	}
	for i := range aggregated {
		aggregated[i], _ = strings.CutSuffix(aggregated[i], " rbac.authorization.k8s.io/aggregate-to-view")
	}
	if diff := cmp.Diff(partsOfView, aggregated); diff != "" {
		t.Errorf("other roles are part of Kubernetes' own (-want +got):\n%s", diff)
	}
}

func allRolesForPeople() []string {
	return []string{"fleetgate-viewer", "fleetgate-author", "fleetgate-operator", "fleetgate-admin",
		"fleetgate-ocm-viewer", "fleetgate-ocm-author", "fleetgate-ocm-operator"}
}
