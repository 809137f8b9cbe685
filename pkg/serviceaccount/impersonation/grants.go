// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package impersonation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	msav1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
)

const (
	// RoleName is the ClusterRole, and the ClusterRoleBinding, that hold the grants.
	RoleName = "fleetgate-impersonate"
	// Path is where the gateway asks, on the agent's own target of the tunnel.
	Path = "/v1/impersonations"

	maxUsers        = 1000
	maxRoleGroups   = 2000
	maxRequestBytes = 1 << 20
	effectivePoll   = 10 * time.Millisecond
	effectiveWithin = 10 * time.Second
)

// ErrRefused is returned for a pair that is never granted. Its text says which
// name, and what to do.
var ErrRefused = errors.New("impersonation refused")

// Grants adds users and groups to what the gateway's account may impersonate.
type Grants struct {
	// Client reads and writes the member's API server itself: nobody else writes
	// the role, and a cache would be behind.
	Client client.Client

	// lock serializes grants.
	lock sync.Mutex
}

// Handler serves Path: 204 when the grant is effective, 403 with {"message"} when
// the agent refuses, 400 for what is not a request.
func (g *Grants) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+Path, func(w http.ResponseWriter, r *http.Request) {
		var request Request
		decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequestBytes))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&request); err != nil {
			answer(w, http.StatusBadRequest, "the body is not a request for impersonation")
			return
		}
		switch err := g.Grant(r.Context(), request); {
		case err == nil:
			w.WriteHeader(http.StatusNoContent)
		case errors.Is(err, ErrRefused):
			answer(w, http.StatusForbidden, err.Error())
		default:
			log.FromContext(r.Context()).Error(err, "Could not grant an impersonation")
			answer(w, http.StatusInternalServerError, err.Error())
		}
	})
	return mux
}

func answer(w http.ResponseWriter, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	// The gateway is gone if this fails, and asks again.
	_ = json.NewEncoder(w).Encode(map[string]string{"message": message})
}

// Grant returns when the gateway's account may impersonate the pair, or ErrRefused.
func (g *Grants) Grant(ctx context.Context, request Request) error {
	if reason := request.refusal(); reason != "" {
		return fmt.Errorf("%w: %s", ErrRefused, reason)
	}
	g.lock.Lock()
	defer g.lock.Unlock()
	if err := g.ensureBinding(ctx); err != nil {
		return err
	}
	if err := retry.RetryOnConflict(retry.DefaultRetry, func() error { return g.ensureRole(ctx, request) }); err != nil {
		return fmt.Errorf("adding to ClusterRole %s: %w", RoleName, err)
	}
	return g.waitEffective(ctx, request)
}

// ensureRole writes the role if a name is new. That a known name was asked for
// again is only kept along with such a write: reads stay reads.
func (g *Grants) ensureRole(ctx context.Context, request Request) error {
	role := &rbacv1.ClusterRole{}
	err := g.Client.Get(ctx, client.ObjectKey{Name: RoleName}, role)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	users, newUser := remember(namesOf(role, "users"), []string{request.User}, maxUsers)
	groups, newGroup := remember(namesOf(role, "groups"), request.Groups, maxRoleGroups)
	if err == nil && !newUser && !newGroup {
		return nil
	}
	role.Name, role.Rules = RoleName, rulesFor(users, groups)
	if err != nil {
		return g.Client.Create(ctx, role)
	}
	return g.Client.Update(ctx, role)
}

func rulesFor(users, groups []string) []rbacv1.PolicyRule {
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"users"}, Verbs: []string{"impersonate"}, ResourceNames: users}}
	if len(groups) > 0 { // A rule without names would allow them all.
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"groups"}, Verbs: []string{"impersonate"}, ResourceNames: groups})
	}
	return rules
}

// namesOf returns what the role's rule on a resource lists, oldest first.
func namesOf(role *rbacv1.ClusterRole, resource string) []string {
	for _, rule := range role.Rules {
		if slices.Contains(rule.Resources, resource) {
			return rule.ResourceNames
		}
	}
	return nil
}

func (g *Grants) ensureBinding(ctx context.Context) error {
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: RoleName},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: RoleName},
		Subjects: []rbacv1.Subject{{
			Kind: rbacv1.ServiceAccountKind, Namespace: msav1beta1.AccountNamespace, Name: msav1beta1.GatewayAccount,
		}},
	}
	err := g.Client.Get(ctx, client.ObjectKeyFromObject(binding), &rbacv1.ClusterRoleBinding{})
	if err == nil {
		return nil
	}
	if client.IgnoreNotFound(err) == nil {
		err = client.IgnoreAlreadyExists(g.Client.Create(ctx, binding))
	}
	if err != nil {
		return fmt.Errorf("binding ClusterRole %s to the gateway's account: %w", RoleName, err)
	}
	return nil
}

// waitEffective returns when the member's authorizer, which follows the roles
// with a little delay, allows the whole pair.
func (g *Grants) waitEffective(ctx context.Context, request Request) error {
	if err := g.waitAllowed(ctx, "users", request.User); err != nil {
		return err
	}
	for _, group := range request.Groups {
		if err := g.waitAllowed(ctx, "groups", group); err != nil {
			return err
		}
	}
	return nil
}

func (g *Grants) waitAllowed(ctx context.Context, resource, name string) error {
	ctx, cancel := context.WithTimeout(ctx, effectiveWithin)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, effectivePoll, true, func(ctx context.Context) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               msav1beta1.AccountUsername(msav1beta1.GatewayAccount),
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: resource, Name: name},
		}}
		err := g.Client.Create(ctx, review)
		return err == nil && review.Status.Allowed, err
	})
	if err != nil {
		return fmt.Errorf("waiting until the gateway's account may impersonate one of the %s: %w", resource, err)
	}
	return nil
}
