// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package untrusted decodes text of untrusted authors: users' Secrets and ConfigMaps, kubeconfigs,
// the values of a chart, annotations, files for a command. All YAML, and every quantity, is decoded
// only here; a test in test/imports lists the exceptions with their reasons.
//
// A few kilobytes of YAML can expand to gigabytes, because an alias repeats what its anchor holds,
// including other aliases. So a text is measured before it is decoded: its bytes, the maximum
// number of its values, then, on the parsed but unexpanded tree, the values, bytes and levels with
// every alias expanded. A text that exceeds a limit, or has a duplicate key, is refused with an
// error that names the limit and the line. The error never quotes the text, which may be a
// Secret's.
//
// Keys and quantities of a few bytes can take minutes to compute with, and are checked first.
//
// Decoded text has the same meaning as in Kubernetes (sigs.k8s.io/yaml, that is YAML 1.1: yes is
// true), with three exceptions: an explicit key wins over a merged one, as YAML specifies; tags
// without a JSON type are refused; and a lone !, which would make its value a string, is ignored.
package untrusted
