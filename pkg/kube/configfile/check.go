// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package configfile

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// OneOf rejects other values.
func OneOf(path *field.Path, value string, allowed ...string) field.ErrorList {
	if slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}

// SomeOf rejects an empty list, and each value that is not allowed.
func SomeOf(path *field.Path, values, allowed []string) field.ErrorList {
	if len(values) == 0 {
		return field.ErrorList{field.Required(path, "choose from "+strings.Join(allowed, ", "))}
	}
	var all field.ErrorList
	for i, value := range values {
		all = append(all, OneOf(path.Index(i), value, allowed...)...)
	}
	return all
}

// Port rejects what is not a port.
func Port(path *field.Path, number int) field.ErrorList { return Between(path, number, 1, 65535) }

// Between rejects numbers outside of a range.
func Between(path *field.Path, number, least, most int) field.ErrorList {
	if number < least || number > most {
		return field.ErrorList{field.Invalid(path, number, fmt.Sprintf("must be between %d and %d", least, most))}
	}
	return nil
}

// Address rejects what is not host:port, except 0 if the endpoint can be disabled.
func Address(path *field.Path, value string, mayBeOff bool) field.ErrorList {
	if mayBeOff && value == "0" {
		return nil
	}
	if _, _, err := net.SplitHostPort(value); err != nil {
		return field.ErrorList{field.Invalid(path, value, "must be host:port")}
	}
	return nil
}

// Loopback rejects addresses other than loopback, for endpoints without authentication.
func Loopback(path *field.Path, value string) field.ErrorList {
	if problems := Address(path, value, true); len(problems) > 0 || value == "0" {
		return problems
	}
	host, _, _ := net.SplitHostPort(value)
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return field.ErrorList{field.Invalid(path, value, "must be a loopback address such as 127.0.0.1:6060, because the endpoint has no authentication")}
	}
	return nil
}

// Invalid reports problems of one value.
func Invalid(path *field.Path, value any, problems ...string) field.ErrorList {
	var all field.ErrorList
	for _, problem := range problems {
		all = append(all, field.Invalid(path, value, problem))
	}
	return all
}

// Without reports a value that has no effect, because another field is not set.
func Without(path *field.Path, useless bool, needed string) field.ErrorList {
	if !useless {
		return nil
	}
	return field.ErrorList{field.Forbidden(path, "has no effect without "+needed)}
}

// Together reports fields of which only some are set.
func Together(path *field.Path, detail string, set ...bool) field.ErrorList {
	if slices.Contains(set, true) && slices.Contains(set, false) {
		return field.ErrorList{field.Forbidden(path, detail)}
	}
	return nil
}
