// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"embed"
	"fmt"
	"strings"

	k8sadmissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

//go:embed policies/member-sizes.yaml policies/member-work-owners.yaml
var memberBounds embed.FS

// memberBoundPolicies bound what a member's agent writes where it may write: the size of
// events, Secrets and reports, and who holds a Work. The files say why.
func memberBoundPolicies() []client.Object {
	var objects []client.Object
	for _, name := range []string{"policies/member-sizes.yaml", "policies/member-work-owners.yaml"} {
		file, err := memberBounds.ReadFile(name)
		if err != nil {
			panic(fmt.Sprintf("reading an embedded policy: %v", err)) // The build has put it there.
		}
		policy, binding, _ := strings.Cut(string(file), "\n---\n")
		vap, bound := &k8sadmissionv1.ValidatingAdmissionPolicy{}, &k8sadmissionv1.ValidatingAdmissionPolicyBinding{}
		for document, into := range map[string]client.Object{policy: vap, binding: bound} {
			if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
				panic(fmt.Sprintf("embedded policy %s: %v", name, err)) // TestEveryExpressionCompiles reads it.
			}
		}
		objects = append(objects, vap, bound)
	}
	return objects
}
