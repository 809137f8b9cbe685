// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package argocd creates an Argo CD cluster Secret for each member that an administrator labelled
// fleetgate.io/argocd: "true". It runs on the hub.
//
// Files: controller.go has watches and the reconcile loop; desired.go has account, role and Secret;
// token.go handles the token in the Secret.
//
// Argo CD reaches the member through the hub: the server is the hub's URL with the path of the
// member's ClusterGateway. The token belongs to one ServiceAccount on the hub, which can use the
// gateways of labelled members and nothing else, so Argo CD has no token of a member. The member's
// RBAC decides what Argo CD can do there, for user
// hub:system:serviceaccount:<namespace>:fleetgate-argocd.
//
// Labels of the member are copied to the Secret, for generators that select clusters by label. A
// Secret that another client created is not changed.
package argocd
