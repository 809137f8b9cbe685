// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// denial is how an API server's authorizer words a no. An admission plugin that
// refuses an object answers with the same code and other words.
var denial = regexp.MustCompile(`cannot ([a-z]+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)"| at the cluster scope)?`)

// AgentMayNot begins the sentence about a right that is missing.
const AgentMayNot = "The agent may not"

// missingRule says which rule the agent lacks on the member, from the text of a
// Forbidden answer; empty if the answer is not about rights.
func missingRule(text string) string {
	found := denial.FindStringSubmatch(text)
	if found == nil {
		return ""
	}
	verb, resource, group, namespace := found[1], found[2], found[3], found[4]
	where := "on the member"
	if namespace != "" {
		where = fmt.Sprintf("in namespace %q of the member", namespace)
	}
	return fmt.Sprintf("%s %s %s %s: its role lacks the rule %s",
		AgentMayNot, verb, schema.GroupResource{Group: group, Resource: resource}, where, Rule(group, resource, verb))
}

// Rule is a PolicyRule as it is written in YAML.
func Rule(group, resource string, verbs ...string) string {
	return fmt.Sprintf("{apiGroups: [%q], resources: [%q], verbs: [%s]}", group, resource, strings.Join(verbs, ", "))
}
