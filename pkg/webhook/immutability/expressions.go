// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	admissionv1alpha1 "fleetgate.io/fleetgate/pkg/apis/admission/v1alpha1"
)

// Messages for callers, in the form that clients of other projects match.
const (
	messageChanged  = "field is immutable"
	messageAssigned = "field is immutable, unable to assign a value if it was already empty"
	messageUnset    = "field is immutable, unable to set an empty value if it was already set"
)

// The two objects of an update. dyn: a type checker that knows the schema would refuse to compare
// an optional field with null.
var (
	newer = access{expression: "dyn(object)"}
	older = access{expression: "dyn(oldObject)"}
)

// A comparison generates CEL for the fields of one policy.
type comparison struct {
	emptyEqualsUnset bool
	// defaults are expressions for the value of an unset field, by path.
	defaults map[admissionv1alpha1.FieldPath]string
}

func comparisonOf(spec *admissionv1alpha1.ImmutabilityPolicySpec) comparison {
	c := comparison{emptyEqualsUnset: true, defaults: map[admissionv1alpha1.FieldPath]string{}}
	if spec.Compare == nil {
		return c
	}
	if spec.Compare.EmptyEqualsUnset != nil {
		c.emptyEqualsUnset = *spec.Compare.EmptyEqualsUnset
	}
	for _, d := range spec.Compare.DefaultOld {
		c.defaults[d.Path] = d.Expression
	}
	return c
}

// expression is true if the update obeys the rule, or the request is no update.
func (c comparison) expression(rule *admissionv1alpha1.FieldRule) string {
	steps := stepsOf(rule.Path)
	var holds string
	switch {
	case rule.Mode == admissionv1alpha1.FieldModeKeepItems:
		last := steps[len(steps)-1]
		holds = c.along(append(slices.Clone(steps[:len(steps)-1]), step{name: last.name}), 0, func(o, n access) string {
			return fmt.Sprintf("%s.all(o, %s.exists(n, o.?%s.orValue(null) == n.?%[3]s.orValue(null)))", o.list(), n.list(), last.key)
		}, older, newer)
	default:
		holds = c.along(steps, 0, func(o, n access) string { return c.ruleFor(rule, o, n) }, older, newer)
	}
	conditions := []string{"request.operation != 'UPDATE'"}
	if rule.When != "" {
		conditions = append(conditions, "!("+rule.When+")")
	}
	return strings.Join(append(conditions, holds), " || ")
}

// along follows a path through both objects. It pairs items of lists by their key, and skips those
// without a partner.
func (c comparison) along(steps []step, depth int, leaf func(o, n access) string, o, n access) string {
	for i, s := range steps {
		o, n = o.field(s.name), n.field(s.name)
		if s.key == "" {
			continue
		}
		itemO, itemN := access{expression: fmt.Sprintf("o%d", depth)}, access{expression: fmt.Sprintf("n%d", depth)}
		return fmt.Sprintf("%s.all(%s, %s.all(%s, %s != %s || (%s)))",
			o.list(), itemO.expression, n.list(), itemN.expression,
			itemO.field(s.key).value(), itemN.field(s.key).value(),
			c.along(steps[i+1:], depth+1, leaf, itemO, itemN))
	}
	return leaf(o, n)
}

// ruleFor is the rule for one field, whose place in both objects is known.
func (c comparison) ruleFor(rule *admissionv1alpha1.FieldRule, o, n access) string {
	switch rule.Mode {
	case admissionv1alpha1.FieldModeImmutable:
		if len(rule.ExceptPaths) > 0 {
			return c.sameExcept(exceptionsOf(rule.ExceptPaths), 0, o, n)
		}
		return c.sameWithDefault(c.defaults[rule.Path], o, n)
	case admissionv1alpha1.FieldModeOnceSet:
		return c.unset(o) + " || " + c.same(o, n)
	case admissionv1alpha1.FieldModeCannotUnset:
		return c.unset(o) + " || !" + c.unset(n)
	case admissionv1alpha1.FieldModeNoFalse:
		return o.value() + " != true || " + n.value() + " == true"
	case admissionv1alpha1.FieldModeNoDowngrade:
		return c.same(o, n) + " || " + notBelow(o, n)
	case admissionv1alpha1.FieldModeSetEqual:
		return sameItems(o, n)
	}
	return "false" // The schema allows no other mode.
}

// unset is true for a missing field, and for a value with the same meaning.
func (c comparison) unset(a access) string {
	if !c.emptyEqualsUnset {
		return "(" + a.value() + " == null)"
	}
	return "(" + a.value() + " in [dyn(null), dyn(''), dyn([]), dyn({})])"
}

func (c comparison) same(o, n access) string {
	equal := o.value() + " == " + n.value()
	if !c.emptyEqualsUnset {
		return "(" + equal + ")"
	}
	return "(" + equal + " || (" + c.unset(o) + " && " + c.unset(n) + "))"
}

// sameWithDefault also compares a field that is unset in one of the objects with its default.
func (c comparison) sameWithDefault(expression string, o, n access) string {
	if expression == "" {
		return c.same(o, n)
	}
	return fmt.Sprintf("%s || (%s && %s == dyn(%s)) || (%s && %s == dyn(%[4]s))",
		c.same(o, n), c.unset(o), n.value(), expression, c.unset(n), o.value())
}

// notBelow compares semantic versions. A value that is no version can become any version; a version
// must not become a value that cannot be compared.
func notBelow(o, n access) string {
	isVersion := func(a access) string {
		return "(type(" + a.value() + ") == string && isSemver(" + a.value() + ", true))"
	}
	return fmt.Sprintf("!%s || (%s && semver(%s, true).compareTo(semver(%s, true)) >= 0)",
		isVersion(o), isVersion(n), n.value(), o.value())
}

// sameItems compares lists without their order, and counts duplicates.
func sameItems(o, n access) string {
	return fmt.Sprintf("(size(%s) == size(%s) && %[1]s.all(i, size(%[1]s.filter(j, j == i)) == size(%[2]s.filter(j, j == i))))",
		o.list(), n.list())
}

// exceptions are paths as a tree: a leaf may change, below a branch only its leaves may.
type exceptions map[step]exceptions

func exceptionsOf(paths []admissionv1alpha1.FieldPath) exceptions {
	root := exceptions{}
	for _, path := range paths {
		at := root
		for _, s := range stepsOf(path) {
			if at[s] == nil {
				at[s] = exceptions{}
			}
			at = at[s]
		}
	}
	return root
}

// sameExcept compares two maps field by field, except those that may change.
func (c comparison) sameExcept(except exceptions, depth int, o, n access) string {
	names, branches := []string{}, []string{}
	for _, s := range slices.SortedFunc(keysOf(except), func(a, b step) int { return strings.Compare(a.name+a.key, b.name+b.key) }) {
		names = append(names, strconv.Quote(s.name))
		if below := except[s]; len(below) > 0 {
			branches = append(branches, c.sameBranch(s, below, depth+1, o.field(s.name), n.field(s.name)))
		}
	}
	key := fmt.Sprintf("k%d", depth)
	at := func(a access) access { return access{a.fields() + "[?" + key + "]", true} }
	rest := fmt.Sprintf("(%s.map(k, k) + %s.map(k, k)).all(%s, %s in [%s] || %s)",
		o.fields(), n.fields(), key, key, strings.Join(slices.Compact(names), ", "), c.same(at(o), at(n)))
	return "(" + strings.Join(append([]string{rest}, branches...), " && ") + ")"
}

// sameBranch compares below a field of which parts may change. It pairs items of a list by their
// key; none may be added or removed.
func (c comparison) sameBranch(s step, except exceptions, depth int, o, n access) string {
	if s.key == "" {
		return c.sameExcept(except, depth, o, n)
	}
	itemO, itemN := access{expression: fmt.Sprintf("o%d", depth)}, access{expression: fmt.Sprintf("n%d", depth)}
	pair := itemO.field(s.key).value() + " == " + itemN.field(s.key).value()
	return fmt.Sprintf("size(%s) == size(%s) && %[1]s.all(%[3]s, %[2]s.exists(%[4]s, %[5]s && %[6]s))",
		o.list(), n.list(), itemO.expression, itemN.expression, pair, c.sameExcept(except, depth+1, itemO, itemN))
}

func keysOf(e exceptions) func(yield func(step) bool) {
	return func(yield func(step) bool) {
		for s := range e {
			if !yield(s) {
				return
			}
		}
	}
}

// message is the text of a rule, and an expression for a better one, or none.
func (c comparison) message(rule *admissionv1alpha1.FieldRule) (message, expression string) {
	if rule.Message != "" {
		return rule.Message, ""
	}
	switch rule.Mode {
	case admissionv1alpha1.FieldModeCannotUnset:
		return "field cannot be unset", ""
	case admissionv1alpha1.FieldModeNoFalse:
		return "field cannot be set to false", ""
	case admissionv1alpha1.FieldModeNoDowngrade:
		return "field version cannot be downgraded", ""
	case admissionv1alpha1.FieldModeKeepItems:
		return "items cannot be removed", ""
	}
	steps := stepsOf(rule.Path)
	if keyed(steps) || len(rule.ExceptPaths) > 0 || rule.Mode == admissionv1alpha1.FieldModeSetEqual {
		return messageChanged, ""
	}
	o, n := older, newer
	for _, s := range steps {
		o, n = o.field(s.name), n.field(s.name)
	}
	return messageChanged, fmt.Sprintf("%s ? '%s' : %s ? '%s' : '%s'", c.unset(o), messageAssigned, c.unset(n), messageUnset, messageChanged)
}

// mention reads only the field, so that a type checker finds paths that the schema does not have.
func mention(path admissionv1alpha1.FieldPath) string {
	at, closing := access{expression: "object"}, ""
	text := ""
	for i, s := range stepsOf(path) {
		at = at.field(s.name)
		if s.key == "" {
			continue
		}
		item := fmt.Sprintf("i%d", i)
		text += at.expression + ".orValue([]).all(" + item + ", " + item + ".?" + s.key + ".hasValue() || "
		closing += ")"
		at = access{expression: item}
	}
	if !at.optional {
		return text + "true" + closing
	}
	return text + at.expression + ".hasValue()" + closing
}
