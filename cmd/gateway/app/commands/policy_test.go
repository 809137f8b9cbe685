// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"bytes"
	"strings"
	"testing"

	"fleetgate.io/fleetgate/pkg/webhook/capz"
)

// runPolicy runs `gateway policy` with arguments and an input.
func runPolicy(input string, args ...string) (string, error) {
	command, out := newPolicyCommand(), &bytes.Buffer{}
	command.SetArgs(args)
	command.SetIn(strings.NewReader(input))
	command.SetOut(out)
	command.SetErr(&bytes.Buffer{})
	err := command.Execute()
	return out.String(), err
}

const exportable = `
# A comment alone is no policy.
---
apiVersion: admission.fleetgate.io/v1alpha1
kind: ImmutabilityPolicy
metadata: {name: widgets}
spec:
  enforcement: Warn
  match: {resourceRules: [{apiGroups: [example.org], apiVersions: ["*"], resources: [widgets], operations: [UPDATE]}]}
  fields:
  - {path: spec.color, mode: Immutable}
`

func TestPolicyExportPrintsAPolicyAndItsBinding(t *testing.T) {
	got, err := runPolicy(exportable, "export")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"kind: ValidatingAdmissionPolicy\n", "kind: ValidatingAdmissionPolicyBinding\n", "name: fleetgate-widgets", "- Warn\n", "message: 'spec.color: field is immutable'"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}

func TestPolicyExportPrintsNothingOfAFileWithAProblem(t *testing.T) {
	pack, err := capz.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ input, want string }{
		"lookups":         {string(pack), "policy capz-last-system-pool has lookups: only the gateway can enforce it"},
		"another kind":    {exportable + "---\n{apiVersion: v1, kind: Secret, metadata: {name: s}}\n", `Secret "s" is not an ImmutabilityPolicy`},
		"wrong CEL":       {strings.ReplaceAll(exportable, "mode: Immutable}", `mode: Immutable, when: "1 +"}`), "spec.fields[0].when"},
		"no YAML":         {"a: [", "reading -"},
		"more than there": {strings.Repeat("# \n", maxPolicyBytes/2), "has more than"},
	} {
		got, err := runPolicy(tt.input, "export", "-f", "-")
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got error %v, want one that says %q", name, err, tt.want)
		}
		if got != "" {
			t.Errorf("%s: printed %.100s", name, got)
		}
	}
}

func TestPolicyPackPrintsThePack(t *testing.T) {
	got, err := runPolicy("", "pack", "capz")
	if err != nil {
		t.Fatal(err)
	}
	policies, err := parsePolicies([]byte(got))
	if err != nil {
		t.Fatal(err)
	}
	if len(policies) < 20 {
		t.Errorf("got %d policies", len(policies))
	}
	if _, err := runPolicy("", "pack", "other"); err == nil {
		t.Error("an unknown pack was printed")
	}
}
