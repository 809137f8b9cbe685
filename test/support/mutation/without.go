// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mutation takes checks away from suites on real API servers, to see that what is
// said to hold them fails then. A check without which everything passes guards nothing.
package mutation

import (
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Variable holds, in the environment of a suite, the names of the policies that it leaves out
// of what it installs, with a comma between them.
const Variable = "FLEETGATE_WITHOUT"

// Left returns what a suite installs of the objects: all, if nobody says otherwise.
func Left(objects []client.Object) []client.Object {
	without := strings.Split(os.Getenv(Variable), ",")
	return slices.DeleteFunc(slices.Clone(objects), func(o client.Object) bool { return slices.Contains(without, o.GetName()) })
}
