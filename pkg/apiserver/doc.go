// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver is the gateway's aggregated API server. The hub's API server forwards every
// request for two groups to it: cluster.core.oam.dev, through which users reach members (package
// clustergateway), and tunnel.fleetgate.io, where the members' agents open their tunnels (package
// tunnels).
//
// It is built on k8s.io/apiserver without etcd and without admission. Nothing is stored here: both
// groups are computed from MemberClusters. The hub authenticates callers (the front proxy's
// headers, TokenReview, client certificates) and authorizes them (SubjectAccessReview). Anonymous
// callers reach only the probes.
//
// Config is plain data, Complete validates it and sets defaults, New builds the server, and Run
// serves until its context ends and the requests in flight are finished.
//
// A request for a member passes all filters of an ordinary API server. It leaves their chain at the
// end, before the routing of stored resources, because the options of a connected subresource would
// refuse dryRun and clean the path.
package apiserver
