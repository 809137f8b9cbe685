// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// denial matches the message of an API server's authorizer. An admission plugin that rejects an
// object returns the same status code with another message.
var denial = regexp.MustCompile(`cannot ([a-z]+) resource "([^"]+)" in API group "([^"]*)"(?: in the namespace "([^"]+)"| at the cluster scope)?`)

// AgentCannot is the start of a message about a missing right.
const AgentCannot = "The agent cannot"

// missingRule returns the rule that the agent's role lacks, derived from the message of a Forbidden
// error; empty if the error is not about rights.
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

// Rule formats a PolicyRule as YAML.
func Rule(group, resource string, verbs ...string) string {
	return fmt.Sprintf("{apiGroups: [%q], resources: [%q], verbs: [%s]}", group, resource, strings.Join(verbs, ", "))
}
