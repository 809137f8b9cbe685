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
	// RoleName is the ClusterRole, and the ClusterRoleBinding, that hold the grants.
	// For accounts in another namespace than usual, that namespace follows it.
	RoleName = "fleetgate-impersonate"
	// Path is where the gateway asks, on the agent's own target of the tunnel.
	Path = "/v1/impersonations"

	maxRequestBytes = 1 << 20
	effectivePoll   = 10 * time.Millisecond
	effectiveWithin = 10 * time.Second
)

// The role with all of its names has to fit into one object, which may have 1.5 MiB.
var (
	userBound  = bound{names: 1000, bytes: 256 << 10}
	groupBound = bound{names: 2000, bytes: 256 << 10}
)

// ErrRefused is returned for a pair that is never granted. Its text says which
// name, and what to do.
var ErrRefused = errors.New("impersonation refused")

// Grants adds users and groups to what the gateway's account may impersonate.
type Grants struct {
	// Client reads and writes the member's API server itself: nobody else writes
	// the role, and a cache would be behind.
	Client client.Client
	// Member reaches the member's API server. Its credentials are not used: the probe
	// has the gateway's account's.
	Member *rest.Config
	// AccountNamespace is the namespace of the gateway's account.
	AccountNamespace string

	// told is the Mode, for everybody to read.
	told atomic.Value
	// lock serializes writes of the role, and guards what follows.
	lock sync.Mutex
	// asked is when the mode was found out.
	asked time.Time
	// users and groups are the names of the role in the order in which they were
	// asked for last. After a restart the role's own order has to do.
	users, groups []string
}

// roleName tells the grants of one hub's gateway from those of another's.
func (g *Grants) roleName() string {
	if g.AccountNamespace == authenticationv1beta1.AccountNamespace {
		return RoleName
	}
	return RoleName + "-" + g.AccountNamespace
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
	mode, err := g.write(ctx, &request)
	if err != nil {
		return err
	}
	return g.waitEffective(ctx, mode, request)
}

// write makes binding and role right, with what is asked for if anything is, and returns
// the role's mode.
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

// overtaken is how often and when to try again, about a second in all.
func overtaken() wait.Backoff {
	return wait.Backoff{Steps: 10, Duration: 10 * time.Millisecond, Factor: 1.5, Jitter: 0.5}
}

// isOvertaken is true for what another agent's write, in a change of pods, causes.
func isOvertaken(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

// prepareRole makes sure that the role holds the rules of the probe, and returns in which
// mode the rest of it is written.
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

// ensureRole writes the role if a name is new, if it is of another mode, or if somebody
// else changed it.
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

// grantable drops the names that are never granted: somebody else wrote them
// into the role, or an agent with fewer scruples.
func grantable(kind string, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return refuseName(kind, name) != "" })
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

// ensureBinding binds the role to the gateway's account and to nobody else.
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
	if current.RoleRef != wanted.RoleRef { // It cannot be changed, only made anew.
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

// waitEffective returns when the member's authorizer, which follows the roles
// with a little delay, allows the whole pair.
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
