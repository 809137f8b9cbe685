// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver is the gateway's aggregated API server: the hub's API server
// hands it every request for the groups cluster.core.oam.dev (the way into
// members, package clustergateway) and tunnel.fleetgate.io (where the members'
// agents open their tunnels, package tunnels).
//
// It is built on k8s.io/apiserver without etcd and without admission: nothing is
// stored here, both groups are computed from MemberClusters. Callers are
// authenticated by the hub (the front proxy's headers, TokenReview, client
// certificates) and authorized by the hub (SubjectAccessReview); anonymous
// callers get the probes and nothing else.
//
// Config is plain data, Complete checks it and fills in defaults, New builds the
// server, Run serves until its context ends and what is under way is finished.
//
// A request for a member passes all filters of an ordinary API server and leaves
// their chain at its end, before the routing of stored resources: the options of
// a connected subresource would refuse dryRun and clean the path.
package apiserver
