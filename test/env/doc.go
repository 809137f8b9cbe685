// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package env runs real Kubernetes control planes on loopback: for integration and
// end-to-end tests, and for `make up`, whose clusters stay up after the command ends.
//
// # What a cluster is
//
// [Start] runs etcd, kube-apiserver and kube-controller-manager as processes, each
// cluster with its own certificate authorities, keys, data and free ports. With
// Options.Nodes a kube-scheduler and KWOK join them: nodes and pods are then simulated,
// everything else is real. A hub has no nodes, a member has some.
//
// What tests may rely on: Node and RBAC authorization; anonymous requests only for the
// health endpoints; ServiceAccount tokens, CertificateSigningRequests and ca.crt
// ConfigMaps that work; an aggregation layer with a front proxy identity (an APIService
// that points outside the cluster needs a Service of type ExternalName); Secrets that are
// encrypted in etcd; every controller of Kubernetes, and admission as it is by default.
//
// What is different from a cluster with machines: no kubelet, no kube-proxy, no DNS, no
// endpoints behind the Service default/kubernetes.
//
// # How it is used
//
//	hub, err := env.Start(ctx, env.Options{Name: "hub"})
//	...
//	defer hub.Stop(ctx)
//	client, err := kubernetes.NewForConfig(hub.Config())
//
// [StartAll] starts several at once. [Cluster.Config] is the break-glass administrator
// (system:masters); [Cluster.ConfigFor] issues a client certificate for anyone else, and
// [Cluster.Kubeconfig] writes one to a file. The programs of a cluster are its fields, each
// a [Process]: c.APIServer.Freeze(), c.APIServer.Restart(ctx), c.Etcd.Kill(ctx). A [Link]
// is a wire that a test can cut or stall. Process and Link know nothing of Kubernetes:
// suites run the gateway and agents with them too.
//
// # Who lives how long
//
// Without Options.Detached every process dies with the one that started it, even when that
// one panics or is killed (on Linux). With it, a process runs in a session of its own and is
// recorded in its folder: [Load] finds a cluster again, [Processes] every process below a
// folder. A record holds the boot and the start time beside the process id, so that a
// stranger who was given the same id later is never signalled.
//
// The programs are those of hack/kube and hack/kwok; they are looked for in .fleetgate/bin,
// where `make kube` puts them. A program that is missing is an error, never a skipped test.
package env
