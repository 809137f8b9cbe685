// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package boundedcel compiles and runs what users write in CEL about one object: which
// clusters a placement is for, which conditions a manifest has.
//
// A [Compiler] knows the functions that API servers have in such expressions, and whatever
// variables and functions its user adds. It keeps what it has compiled. A [Program] runs
// within a budget, in the units and with the limits of rules of
// CustomResourceDefinitions, so that no expression holds up its reader for long.
package boundedcel
