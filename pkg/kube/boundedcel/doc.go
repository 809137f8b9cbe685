// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package boundedcel compiles and runs users' CEL expressions about one object: which clusters a
// placement is for, which conditions a manifest has.
//
// A [Compiler] supports the functions that API servers support in such expressions, and additional
// variables and functions. It caches compiled expressions. A [Program] runs within a budget, in the
// units and with the limits of rules of CustomResourceDefinitions, so that no expression blocks its
// caller for long.
package boundedcel
