// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package untrusted reads text that somebody else wrote: what a user put into a Secret or
// a ConfigMap, a kubeconfig, the values of a chart, an annotation, a file that a command
// is given. Everything that is YAML, and every quantity, is read here and nowhere else; a
// test in test/imports holds the exceptions, each with its reason.
//
// A few kilobytes of YAML can stand for gigabytes, since an alias repeats what its anchor
// holds, aliases too. So a text is measured before anything is made of it: its bytes, how
// many values it can hold at most, then, on the parsed but unexpanded tree, the values,
// bytes and levels that come of it with every alias expanded. What is over a limit, or has
// a key twice, is refused with an error that names the limit and the line, and never
// quotes the text, which may be a Secret's.
//
// Keys and quantities of a few bytes can take minutes to compute with, and are bounded
// before anything is computed.
//
// What is read means the same as to Kubernetes (sigs.k8s.io/yaml, that is YAML 1.1: yes is
// true), with three exceptions: a key that is there already wins over what is merged into
// its map, as YAML says; tags that JSON has no type for are refused; and a lone !, which
// would make a text of what is behind it, is not heeded.
package untrusted
