// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// denial is the message of an API server's authorizer. An admission plugin that rejects an object
// uses the same code and another message.
var denial = regexp.MustCompile(`cannot ([a-z]+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)"| at the cluster scope)?`)

// AgentCannot begins the sentence about a right that is missing.
const AgentCannot = "The agent cannot"

// missingRule says which rule the agent lacks on the member, from the message of a
// Forbidden error; empty if the error is not about rights.
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
		AgentCannot, verb, schema.GroupResource{Group: group, Resource: resource}, where, Rule(group, resource, verb))
}

// Rule is a PolicyRule as it is written in YAML.
func Rule(group, resource string, verbs ...string) string {
	return fmt.Sprintf("{apiGroups: [%q], resources: [%q], verbs: [%s]}", group, resource, strings.Join(verbs, ", "))
}
