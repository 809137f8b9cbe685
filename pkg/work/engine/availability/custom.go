// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package availability

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// isBuiltIn reports whether an API group is part of Kubernetes. Kinds of Kubernetes subprojects,
// such as the Gateway API, are custom resources.
func isBuiltIn(group string) bool {
	name, protected := strings.CutSuffix(group, ".k8s.io")
	if !protected {
		return !strings.Contains(group, ".")
	}
	switch name {
	case "admissionregistration", "apiextensions", "apiregistration", "authentication", "authorization", "certificates",
		"coordination", "discovery", "events", "flowcontrol.apiserver", "internal.apiserver", "metrics", "networking", "node",
		"rbac.authorization", "resource", "scheduling", "storage", "storagemigration":
		return true
	}
	return false
}

// custom evaluates a custom resource by the kstatus conventions of cli-utils: observedGeneration
// and the conditions Stalled, Reconciling and Ready. The library is not used: most of it are rules
// for built-in kinds that differ from those of the placement API, and it would link packages of
// kubectl into the agent.
func custom(object *unstructured.Unstructured) Finding {
	if isBehind(object) {
		return behind(object)
	}
	generation, kind := object.GetGeneration(), object.GetKind()
	conditions := conditionsIn(object)
	if stalled, found := conditions["Stalled"]; found && stalled.status == "True" {
		return Finding{Failed, stalled.sentence(fmt.Sprintf("The %s is stalled", kind))}
	}
	if reconciling, found := conditions["Reconciling"]; found && reconciling.status == "True" {
		return Finding{NotYet, reconciling.sentence(fmt.Sprintf("The %s is being reconciled", kind))}
	}
	ready, found := conditions["Ready"]
	switch {
	case !found:
		return untracked()
	case ready.generation > 0 && ready.generation < generation:
		return Finding{NotYet, fmt.Sprintf("The controller of the %s has not reported yet whether it is ready since the latest change", kind)}
	case ready.status == "True":
		return Finding{Available, fmt.Sprintf("The %s is ready", kind)}
	}
	return Finding{NotYet, ready.sentence(fmt.Sprintf("The %s is not ready", kind))}
}

// isBehind reports whether the status is that of an earlier generation.
func isBehind(object *unstructured.Unstructured) bool {
	seen, found, err := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	return err == nil && found && seen < object.GetGeneration()
}

func behind(object *unstructured.Unstructured) Finding {
	return Finding{NotYet, fmt.Sprintf("The controller of the %s has not seen the latest change yet", object.GetKind())}
}

// condition is a condition of an object.
type condition struct {
	status, reason, message string
	generation              int64
}

// sentence appends the reason and message of the condition to text.
func (s condition) sentence(text string) string {
	why := s.reason
	if s.message != "" {
		why = sentence(s.reason, s.message)
	}
	if why == "" {
		return text
	}
	return text + ": " + why
}

func conditionsIn(object *unstructured.Unstructured) map[string]condition {
	list, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	found := map[string]condition{}
	for _, item := range list {
		fields, _ := item.(map[string]any)
		text := func(key string) string {
			value, _ := fields[key].(string)
			return value
		}
		generation, _ := fields["observedGeneration"].(int64)
		if kind := text("type"); kind != "" {
			found[kind] = condition{status: text("status"), reason: text("reason"), message: text("message"), generation: generation}
		}
	}
	return found
}
