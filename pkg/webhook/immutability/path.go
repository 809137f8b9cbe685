// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability

import (
	"regexp"
	"strconv"
	"strings"

	admissionv1alpha1 "fleetgate.io/fleetgate/pkg/apis/admission/v1alpha1"
)

// A step is one field of a path; with a key, it is a list whose items are identified by that key.
type step struct{ name, key string }

// stepsOf splits a path. Its syntax is that of the schema's pattern.
func stepsOf(path admissionv1alpha1.FieldPath) []step {
	var steps []step
	for part := range strings.SplitSeq(string(path), ".") {
		name, key, keyed := strings.Cut(part, "[")
		if keyed {
			key = strings.TrimSuffix(key, "]")
		}
		steps = append(steps, step{name: name, key: key})
	}
	return steps
}

// keyed is true for a path through the items of a list.
func keyed(steps []step) bool {
	for _, s := range steps {
		if s.key != "" {
			return true
		}
	}
	return false
}

var plainField = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// isReserved is true for the reserved words of CEL.
func isReserved(word string) bool {
	switch word {
	case "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in",
		"let", "loop", "namespace", "null", "package", "return", "true", "var", "void", "while":
		return true
	}
	return false
}

// An access is a CEL expression for a place in an object. It may be optional: any other type on the
// way (null, a string) makes it absent, not an error.
type access struct {
	expression string
	optional   bool
}

func (a access) field(name string) access {
	if !plainField.MatchString(name) || isReserved(name) {
		return access{a.expression + "[?" + strconv.Quote(name) + "]", true}
	}
	return access{a.expression + ".?" + name, true}
}

// value is the value there, or null.
func (a access) value() string {
	if !a.optional {
		return a.expression
	}
	return a.expression + ".orValue(null)"
}

// list is the items there, none if it is no list.
func (a access) list() string {
	return "(type(" + a.value() + ") == list ? " + a.value() + " : [])"
}

// fields is the map there, empty if it is none.
func (a access) fields() string {
	return "(type(" + a.value() + ") == map ? " + a.value() + " : {})"
}
