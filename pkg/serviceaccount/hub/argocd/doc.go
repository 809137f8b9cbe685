// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package argocd gives Argo CD a Secret for each member that an administrator
// labelled fleetgate.io/argocd: "true", as Argo CD knows clusters. It runs on the
// hub.
//
// How the parts fit: controller.go says what is watched and done; desired.go is
// what account, role and Secret look like; token.go is about the token in them.
//
// The Secret leads to the member through the hub: its server is the hub's URL with
// the path of the member's ClusterGateway, its token that of one ServiceAccount on
// the hub which may use the gateways of the labelled members and nothing else. So
// Argo CD holds no member's token. What it may do on a member is the member's own
// RBAC, for the user hub:system:serviceaccount:<namespace>:fleetgate-argocd.
//
// Labels of the member become labels of the Secret, for generators that choose
// clusters by them. A Secret that somebody else made is left alone.
package argocd
