// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestwork

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/itchyny/gojq"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
)

const (
	// jqTakes limits the run time of a jq expression.
	jqTakes = time.Second
	// mostPlaces limits the places of an object that one expression can match.
	mostPlaces = 1000
)

// removeByJQ removes the fields that a jq expression matches.
func removeByJQ(ctx context.Context, object *unstructured.Unstructured, expression string) (err error) {
	defer func() {
		if caught := recover(); caught != nil {
			err = fmt.Errorf("%v", caught)
		}
	}()
	if len(expression) > longestPath {
		return fmt.Errorf("it has more than %d bytes", longestPath)
	}
	leads, err := gojq.Parse(expression)
	if err != nil {
		return fmt.Errorf("failed to parse jq expression: %w", err)
	}
	if err := findsOnly(leads); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, jqTakes)
	defer cancel()
	fields := plain(object.Object)
	places, err := runJQ(ctx, call("path", leads), fields, nil)
	if err != nil {
		return err
	}
	after, err := runJQ(ctx, call("delpaths", call("$places")), fields, places)
	if err != nil {
		return err
	}
	text, err := json.Marshal(after[0])
	if err != nil {
		return err
	}
	return replaceBy(object, text)
}

func call(function string, arguments ...*gojq.Query) *gojq.Query {
	return &gojq.Query{Term: &gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: function, Args: arguments}}}
}

// runJQ returns all results of a query. places is the value of its variable $places. Without a
// loader and an environment the query cannot read anything else.
func runJQ(ctx context.Context, query *gojq.Query, value any, places []any) (yields []any, err error) {
	code, err := gojq.Compile(query, gojq.WithVariables([]string{"$places"}))
	if err != nil {
		return nil, fmt.Errorf("failed to compile jq expression: %w", err)
	}
	for results := code.RunWithContext(ctx, value, places); ; {
		result, more := results.Next()
		if !more {
			return yields, nil
		}
		if failure, is := result.(error); is {
			if errors.Is(failure, context.DeadlineExceeded) {
				return nil, fmt.Errorf("jq expression execution timed out after %v", jqTakes)
			}
			return nil, fmt.Errorf("jq expression returned error: %w", failure)
		}
		if len(yields) == mostPlaces {
			return nil, fmt.Errorf("it leads to more than %d places", mostPlaces)
		}
		yields = append(yields, result)
	}
}

// findsOnly rejects expressions that do more than select fields. A few bytes of jq can build a
// value of any size, and a program that is stopped after a second may have used gigabytes. The
// allowed subset builds no value larger than the object.
func findsOnly(query *gojq.Query) error {
	if query == nil {
		return nil
	}
	if len(query.Imports) > 0 || len(query.FuncDefs) > 0 || len(query.Patterns) > 0 || query.Meta != nil {
		return errors.New("imports and definitions are not allowed")
	}
	if query.Term != nil {
		return termFindsOnly(query.Term)
	}
	switch query.Op {
	case gojq.OpPipe, gojq.OpComma, gojq.OpAlt, gojq.OpOr, gojq.OpAnd, gojq.OpEq, gojq.OpNe, gojq.OpGt, gojq.OpLt, gojq.OpGe, gojq.OpLe:
		return allFindOnly(query.Left, query.Right)
	}
	return fmt.Errorf("operator %q is not allowed", query.Op.String())
}

func allFindOnly(queries ...*gojq.Query) error {
	for _, query := range queries {
		if err := findsOnly(query); err != nil {
			return err
		}
	}
	return nil
}

func termFindsOnly(term *gojq.Term) error {
	var err error
	switch term.Type {
	case gojq.TermTypeIdentity, gojq.TermTypeRecurse, gojq.TermTypeNull, gojq.TermTypeTrue, gojq.TermTypeFalse, gojq.TermTypeNumber:
	case gojq.TermTypeString:
		err = stringFindsOnly(term.Str)
	case gojq.TermTypeIndex:
		err = indexFindsOnly(term.Index)
	case gojq.TermTypeFunc:
		err = functionFindsOnly(term.Func)
	case gojq.TermTypeQuery:
		err = findsOnly(term.Query)
	case gojq.TermTypeIf:
		err = allFindOnly(term.If.Cond, term.If.Then, term.If.Else)
		for _, other := range term.If.Elif {
			err = errors.Join(err, allFindOnly(other.Cond, other.Then))
		}
	case gojq.TermTypeArray:
		// Lists are allowed as arguments, such as of getpath.
		if !literal(term.Array.Query) {
			err = fmt.Errorf("list %q is not allowed: only lists of strings and numbers are", term.String())
		}
	default:
		err = fmt.Errorf("%q is not allowed: an expression can only select fields", term.String())
	}
	for _, suffix := range term.SuffixList {
		err = errors.Join(err, indexFindsOnly(suffix.Index))
	}
	return err
}

// literal reports whether a query is a list of strings and numbers.
func literal(query *gojq.Query) bool {
	switch {
	case query == nil:
		return true
	case query.Op == gojq.OpComma:
		return literal(query.Left) && literal(query.Right)
	case query.Term == nil || len(query.Term.SuffixList) > 0:
		return false
	}
	return query.Term.Type == gojq.TermTypeNumber || query.Term.Type == gojq.TermTypeString && stringFindsOnly(query.Term.Str) == nil
}

func stringFindsOnly(text *gojq.String) error {
	if text != nil && len(text.Queries) > 0 {
		return fmt.Errorf("string interpolation is not allowed: %q", text.String())
	}
	return nil
}

func indexFindsOnly(index *gojq.Index) error {
	if index == nil {
		return nil
	}
	return errors.Join(stringFindsOnly(index.Str), allFindOnly(index.Start, index.End))
}

// functionFindsOnly allows functions that, by jq's manual, only select, compare or inspect values,
// and whose result is no larger than their input.
func functionFindsOnly(function *gojq.Func) error {
	if !slices.Contains([]string{
		"select", "empty", "recurse", "first", "last", "nth", "limit", "getpath",
		"not", "any", "all", "isempty", "has", "contains", "inside", "IN",
		"startswith", "endswith", "ltrimstr", "rtrimstr", "test", "ascii_downcase", "ascii_upcase",
		"length", "type", "tostring", "tonumber",
		"arrays", "objects", "iterables", "booleans", "numbers", "strings", "nulls", "values", "scalars",
	}, function.Name) || function.Name == "recurse" && len(function.Args) > 0 {
		return fmt.Errorf("function %q with %d arguments is not allowed", function.Name, len(function.Args))
	}
	return allFindOnly(function.Args...)
}

// plain converts a value to the types of gojq, which represents integers as int.
func plain(value any) any {
	switch value := value.(type) {
	case map[string]any:
		fields := make(map[string]any, len(value))
		for key, field := range value {
			fields[key] = plain(field)
		}
		return fields
	case []any:
		items := make([]any, len(value))
		for place, item := range value {
			items[place] = plain(item)
		}
		return items
	case int64:
		return int(value)
	}
	return value
}
