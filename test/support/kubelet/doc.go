// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubelet stands in for the kubelet of a node in tests: what is asked of a
// pod happens on this machine, so that bytes really flow. An API server speaks to
// it as to any, SPDY, into which it translates WebSocket. It starts no pod.
package kubelet
