// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"net"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

func known(flag string, given, allowed []string) error {
	if len(given) == 0 {
		return fmt.Errorf("%s is empty: choose from %s", flag, strings.Join(allowed, ", "))
	}
	if unknown := sets.New(given...).Difference(sets.New(allowed...)); unknown.Len() > 0 {
		return fmt.Errorf("%s has the unknown value %s: choose from %s", flag, strings.Join(sets.List(unknown), ", "), strings.Join(allowed, ", "))
	}
	return nil
}

func port(flag string, number int) error {
	if number < 1 || number > 65535 {
		return fmt.Errorf("%s %d is not a port", flag, number)
	}
	return nil
}

func address(flag, value string, mayBeOff bool) error {
	if mayBeOff && value == "0" {
		return nil
	}
	if _, _, err := net.SplitHostPort(value); err != nil {
		return fmt.Errorf("%s %q is not host:port", flag, value)
	}
	return nil
}

// loopback rejects addresses other than loopback, for endpoints without authentication.
func loopback(flag, value string) error {
	if value == "0" {
		return nil
	}
	host, _, err := net.SplitHostPort(value)
	if err != nil {
		return fmt.Errorf("%s %q is not host:port", flag, value)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("%s %q is not a loopback address, and the endpoint has no authentication: use 127.0.0.1:6060", flag, value)
	}
	return nil
}
