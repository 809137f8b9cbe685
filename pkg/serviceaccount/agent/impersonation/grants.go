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
	"sync/atomic"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
)

const (
	// RoleName is the name of the ClusterRole and ClusterRoleBinding with the grants. For accounts
	// outside the default namespace, the namespace is appended.
	RoleName = "fleetgate-impersonate"
	// Path is the URL path for grant requests, on target agent of the tunnel.
	Path = "/v1/impersonations"

	maxRequestBytes = 1 << 20
	effectivePoll   = 10 * time.Millisecond
	effectiveWithin = 10 * time.Second
)

// The role with all names must fit into one object, whose limit is 1.5 MiB.
var (
	userBound  = bound{names: 1000, bytes: 256 << 10}
	groupBound = bound{names: 2000, bytes: 256 << 10}
)

// ErrRefused is returned for identities that are never granted. Its text has the name and the
// remedy.
var ErrRefused = errors.New("impersonation refused")

// Grants adds users and groups to those that the gateway's account may impersonate.
type Grants struct {
	// Client accesses the member's API server without a cache: a cache could lag behind the agent's
	// own writes.
	Client client.Client
	// Member is the configuration to reach the member's API server. The probe replaces its
	// credentials by those of the gateway's account.
	Member *rest.Config
	// AccountNamespace is the namespace of the gateway's account.
	AccountNamespace string

	// message is the present Mode, for lock-free reads.
	message atomic.Value
	// lock serializes writes of the role, and guards the following fields.
	lock sync.Mutex
	// detected is when the mode was last detected.
	detected time.Time
	// users and groups are the names in the role, in the order of their last request. After a
	// restart it is the order in the role.
	users, groups []string
}

// roleName distinguishes the grants for the gateways of several hubs.
func (g *Grants) roleName() string {
	if g.AccountNamespace == authenticationv1beta1.AccountNamespace {
		return RoleName
	}
	return RoleName + "-" + g.AccountNamespace
}

// Handler serves Path: 204 when the grant is effective, 403 with {"message"} if the agent refuses
// it, 400 for an invalid request.
func (g *Grants) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+Path, func(w http.ResponseWriter, r *http.Request) {
		var request Request
		decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequestBytes))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&request); err != nil {
			respond(w, http.StatusBadRequest, "the body is not a request for impersonation")
			return
		}
		switch err := g.Grant(r.Context(), request); {
		case err == nil:
			w.WriteHeader(http.StatusNoContent)
		case errors.Is(err, ErrRefused):
			respond(w, http.StatusForbidden, err.Error())
		default:
			log.FromContext(r.Context()).Error(err, "Could not grant an impersonation")
			respond(w, http.StatusInternalServerError, err.Error())
		}
	})
	return mux
}

func respond(w http.ResponseWriter, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	// If this fails, the gateway has disconnected and will retry.
	_ = json.NewEncoder(w).Encode(map[string]string{"message": message})
}

// Grant returns nil once the gateway's account can impersonate user and groups, or ErrRefused.
func (g *Grants) Grant(ctx context.Context, request Request) error {
	if reason := request.refusal(); reason != "" {
		return fmt.Errorf("%w: %s", ErrRefused, reason)
	}
	mode, err := g.write(ctx, &request)
	if err != nil {
		return err
	}
	return g.waitEffective(ctx, mode, request)
}

// write updates binding and role, adds the requested names if request is not nil, and returns the
// mode of the role.
func (g *Grants) write(ctx context.Context, request *Request) (Mode, error) {
	g.lock.Lock()
	defer g.lock.Unlock()
	if err := retry.OnError(overtaken(), isOvertaken, func() error { return g.ensureBinding(ctx) }); err != nil {
		return "", fmt.Errorf("binding ClusterRole %s to the gateway's account: %w", g.roleName(), err)
	}
	mode, err := g.settle(ctx)
	if err != nil {
		return "", err
	}
	if err := retry.OnError(overtaken(), isOvertaken, func() error { return g.ensureRole(ctx, mode, request) }); err != nil {
		return "", fmt.Errorf("adding to ClusterRole %s: %w", g.roleName(), err)
	}
	return mode, nil
}

// overtaken is the backoff after a conflict, about a second in total.
func overtaken() wait.Backoff {
	return wait.Backoff{Steps: 10, Duration: 10 * time.Millisecond, Factor: 1.5, Jitter: 0.5}
}

// isOvertaken recognizes errors from concurrent writes of another agent Pod, as during a rollout.
func isOvertaken(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

// prepareRole ensures that the role contains the rules of the probe, and returns the mode of its
// other rules.
func (g *Grants) prepareRole(ctx context.Context) (Mode, error) {
	role := &rbacv1.ClusterRole{}
	err := g.Client.Get(ctx, client.ObjectKey{Name: g.roleName()}, role)
	if client.IgnoreNotFound(err) != nil {
		return "", err
	}
	written, probing := modeOf(role.Rules), probeRules()
	if tail := len(role.Rules) - len(probing); tail >= 0 && equality.Semantic.DeepEqual(role.Rules[tail:], probing) {
		return written, nil
	}
	role.Rules = append(role.Rules, probing...)
	return written, g.writeRole(ctx, role, err != nil)
}

func (g *Grants) writeRole(ctx context.Context, role *rbacv1.ClusterRole, isNew bool) error {
	role.Name, role.AggregationRule = g.roleName(), nil
	if isNew {
		return g.Client.Create(ctx, role)
	}
	return g.Client.Update(ctx, role)
}

// ensureRole writes the role if a name is new, its mode differs, or another client changed it.
func (g *Grants) ensureRole(ctx context.Context, mode Mode, request *Request) error {
	role := &rbacv1.ClusterRole{}
	err := g.Client.Get(ctx, client.ObjectKey{Name: g.roleName()}, role)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	users, groups := grantable("user", namesOf(role, "users")), grantable("group", namesOf(role, "groups"))
	asIs := equality.Semantic.DeepEqual(role.Rules, mode.rules(users, groups))
	var newUser, newGroup bool
	if request != nil {
		g.users, newUser = remember(byRecency(users, g.users), []string{request.User}, userBound)
		g.groups, newGroup = remember(byRecency(groups, g.groups), request.Groups, groupBound)
		users, groups = g.users, g.groups
	}
	if asIs && !newUser && !newGroup {
		return nil
	}
	role.Rules = mode.rules(users, groups)
	return g.writeRole(ctx, role, err != nil)
}

// grantable removes names that are never granted. Another client, or an earlier version of the
// agent, wrote them.
func grantable(kind string, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return refuseName(kind, name) != "" })
}

// namesOf returns the names in the role's rule for a resource, oldest first.
func namesOf(role *rbacv1.ClusterRole, resource string) []string {
	for _, rule := range role.Rules {
		if slices.Contains(rule.Resources, resource) {
			return rule.ResourceNames
		}
	}
	return nil
}

// ensureBinding binds the role to the gateway's account only.
func (g *Grants) ensureBinding(ctx context.Context) error {
	wanted := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: g.roleName()},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: g.roleName()},
		Subjects: []rbacv1.Subject{{
			Kind: rbacv1.ServiceAccountKind, Namespace: g.AccountNamespace, Name: authenticationv1beta1.GatewayAccount,
		}},
	}
	current := &rbacv1.ClusterRoleBinding{}
	err := g.Client.Get(ctx, client.ObjectKeyFromObject(wanted), current)
	if apierrors.IsNotFound(err) {
		return g.Client.Create(ctx, wanted)
	}
	if err != nil {
		return err
	}
	if current.RoleRef != wanted.RoleRef { // roleRef is immutable; re-create the binding
		if err := g.Client.Delete(ctx, current, client.Preconditions{UID: &current.UID}); client.IgnoreNotFound(err) != nil {
			return err
		}
		return g.Client.Create(ctx, wanted)
	}
	if equality.Semantic.DeepEqual(current.Subjects, wanted.Subjects) {
		return nil
	}
	current.Subjects = wanted.Subjects
	return g.Client.Update(ctx, current)
}

// waitEffective returns when the member's authorizer, which lags behind roles, allows user and
// groups.
func (g *Grants) waitEffective(ctx context.Context, mode Mode, request Request) error {
	ctx, cancel := context.WithTimeout(ctx, effectiveWithin)
	defer cancel()
	if err := g.waitAllowed(ctx, mode, "users", request.User); err != nil {
		return err
	}
	for _, group := range request.Groups {
		if err := g.waitAllowed(ctx, mode, "groups", group); err != nil {
			return err
		}
	}
	return nil
}

func (g *Grants) waitAllowed(ctx context.Context, mode Mode, resource, name string) error {
	err := wait.PollUntilContextCancel(ctx, effectivePoll, true, func(ctx context.Context) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               authenticationv1beta1.UsernameIn(g.AccountNamespace, authenticationv1beta1.GatewayAccount),
			ResourceAttributes: mode.attributes(resource, name),
		}}
		err := g.Client.Create(ctx, review)
		return err == nil && review.Status.Allowed, err
	})
	if err != nil {
		return fmt.Errorf("waiting until the gateway's account may impersonate one of the %s: %w", resource, err)
	}
	return nil
}
