// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package configfile loads the configuration file of a program, and lets flags override its fields.
// The program passes a struct with its defaults; fields that the file omits keep them.
package configfile

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"

	"fleetgate.io/fleetgate/pkg/kube/nearest"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

var limits = untrusted.Limits{Bytes: 1 << 20, Values: 10_000, Depth: 20, Aliases: 100}

// Load reads a file of the given kind into a struct. Its error names every unknown field.
func Load(path string, kind metav1.TypeMeta, into any) error {
	text, err := readFile(path)
	if err == nil {
		err = Decode(text, kind, into)
	}
	if err != nil {
		return fmt.Errorf("reading --config %s: %w", path, err)
	}
	return nil
}

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > int64(limits.Bytes) {
		return nil, &untrusted.LimitError{What: "bytes", Most: limits.Bytes}
	}
	return os.ReadFile(path)
}

// Decode is Load for the content of a file.
func Decode(text []byte, kind metav1.TypeMeta, into any) error {
	content, err := untrusted.ToJSON(text, limits)
	if err != nil {
		return err
	}
	var found metav1.TypeMeta
	if err := json.UnmarshalCaseSensitivePreserveInts(content, &found); err != nil {
		return err
	}
	if found != kind {
		return fmt.Errorf("it is kind %q of apiVersion %q: use kind %s of apiVersion %s", found.Kind, found.APIVersion, kind.Kind, kind.APIVersion)
	}
	problems, err := json.UnmarshalStrict(content, into)
	if err != nil {
		return err
	}
	known := Fields(into)
	for i, problem := range problems {
		problems[i] = withNearest(problem, known)
	}
	return errors.Join(problems...)
}

// withNearest adds the most similar known field to the error about an unknown one.
func withNearest(problem error, known []string) error {
	var at json.FieldError
	if !errors.As(problem, &at) || slices.Contains(known, at.FieldPath()) {
		return problem
	}
	path := at.FieldPath()
	similar := nearest.Names(path, known)
	if len(similar) == 0 {
		similar = elsewhere(path, known)
	}
	if len(similar) == 0 {
		return problem
	}
	return fmt.Errorf("%w: did you mean %s?", problem, similar[0])
}

// elsewhere returns the fields of other sections that have the same or a similar last name.
func elsewhere(path string, known []string) []string {
	byName := map[string]string{}
	for _, field := range known {
		byName[lastName(field)] = field
	}
	var names, fields []string
	for name := range byName {
		names = append(names, name)
	}
	for _, name := range nearest.Names(lastName(path), names) {
		fields = append(fields, byName[name])
	}
	return fields
}

func lastName(path string) string { return path[strings.LastIndex(path, ".")+1:] }

// Fields returns the paths of all fields that a file of the struct's kind can have.
func Fields(of any) []string {
	kind := reflect.TypeOf(of)
	if kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	return fieldsOf("", kind)
}

func fieldsOf(prefix string, kind reflect.Type) []string {
	var paths []string
	for i := range kind.NumField() {
		field := kind.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "":
			paths = append(paths, fieldsOf(prefix, field.Type)...)
		case field.Type.Kind() == reflect.Struct && field.Type != reflect.TypeFor[metav1.Duration]():
			paths = append(append(paths, prefix+name), fieldsOf(prefix+name+".", field.Type)...)
		default:
			paths = append(paths, prefix+name)
		}
	}
	return paths
}
