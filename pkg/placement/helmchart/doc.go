// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package helmchart makes of a Helm chart what one member gets of it. The chart, and the
// values for it, stand in a ConfigMap or a Secret with the annotation
// placementv1beta1.HelmChartAnnotation that an ordinary placement selects; such an object is
// treated as an envelope that has to be rendered before it can be opened.
//
//   - [Read] makes a [Release] of such an object and a member: all that the rendering
//     depends on, and nothing else. The same Release gives the same manifests, byte for byte.
//
//   - [Process] renders a Release in a process of its own, since a template cannot be
//     stopped, and may take any time and any memory.
//
//   - [Renderer] does that for many bindings, a few at a time, and tells package dispatch
//     when one is done. What failed is not tried again before something has changed; what
//     took too long is not tried for other members either, for a while.
//
//   - Package oci beside it fetches charts that are in a registry.
//
// The templates see no cluster, no network, no file and no environment. Package engine
// beside it contains Helm; nothing else does.
package helmchart
