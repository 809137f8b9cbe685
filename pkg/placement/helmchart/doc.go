// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package helmchart renders a Helm chart for one member. The chart, and its values, are in a
// ConfigMap or a Secret with the annotation placementv1beta1.HelmChartAnnotation that an ordinary
// placement selects. Such an object is an envelope that has to be rendered before it can be opened.
//
//   - [Read] creates a [Release] from such an object and a member: everything that the
//     rendering depends on. The same Release gives the same manifests, byte for byte.
//   - [Process] renders a Release in a separate process, because a template cannot be
//     stopped and may use any amount of time and memory.
//   - [Renderer] does that for many bindings, a few at a time, and notifies package
//     dispatch. A failed rendering is retried only after a change. A chart that exceeded
//     its limits is not tried for other members for a while.
//   - Package oci fetches charts from registries.
//
// The templates have no access to a cluster, the network, files or the environment. Only package
// engine contains Helm.
package helmchart
