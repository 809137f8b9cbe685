// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/controller/reconcileutil"
)

// TokenControllerName is the name of TokenReconciler.
const TokenControllerName = "clusterregistrationtoken.values"

// legacyTokenPoll is the interval at which a Secret is checked for a token from the controller manager.
// Secrets are not watched, so it has to be read.
const legacyTokenPoll = 250 * time.Millisecond

// TokenReconciler creates the agents' values for ClusterRegistrationTokens.
type TokenReconciler struct {
	// Client writes, and reads ClusterRegistrationTokens, from a cache if it has one.
	Client client.Client
	// Live reads from the API server.
	Live  client.Reader
	Clock clock.PassiveClock
	// Hub is the endpoint of the hub for members.
	Hub Endpoint
	// Namespaces are the namespaces in which clusters can register. Empty means all.
	Namespaces []string
	// Defaults are the permissions of tokens without annotations.
	Defaults Defaults
}

// Endpoint is the hub's API server from the members' point of view.
type Endpoint struct {
	// URL is the API server's, with https.
	URL string
	// CA are PEM certificates to verify it with. Empty means the roots of the member's operating system.
	CA []byte
}

var _ reconcile.Reconciler = (*TokenReconciler)(nil)

// SetupWithManager watches ClusterRegistrationTokens.
func (r *TokenReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named(TokenControllerName).
		For(&registrationv1alpha1.ClusterRegistrationToken{}).
		Complete(reconcileutil.RetryConflicts(r))
}

// Reconcile issues one registration token, or deletes it when it has expired.
func (r *TokenReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var token registrationv1alpha1.ClusterRegistrationToken
	if err := r.Client.Get(ctx, req.NamespacedName, &token); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !token.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	return reconcileutil.RequeueOnConflict(r.reconcile(ctx, &token))
}

func (r *TokenReconciler) reconcile(ctx context.Context, token *registrationv1alpha1.ClusterRegistrationToken) (ctrl.Result, error) {
	life := lifeOf(token, r.Clock.Now())
	if life.over() {
		return ctrl.Result{}, r.expire(ctx, token)
	}
	issued, err := r.issue(ctx, token, life)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.writeStatus(ctx, token, desiredTokenStatus(token, r.Defaults, life, issued)); err != nil {
		return ctrl.Result{}, err
	}
	if issued == waitingForToken {
		return ctrl.Result{RequeueAfter: legacyTokenPoll}, nil
	}
	return ctrl.Result{RequeueAfter: life.left}, nil
}

// life is a token's remaining lifetime.
type life struct {
	infinite bool
	expires  time.Time
	left     time.Duration
}

func (l life) over() bool { return !l.infinite && l.left <= 0 }

func lifeOf(token *registrationv1alpha1.ClusterRegistrationToken, now time.Time) life {
	ttl, infinite := registrationv1alpha1.Lifetime(token.Spec.TTL)
	if infinite {
		return life{infinite: true}
	}
	expires := token.CreationTimestamp.Add(ttl)
	return life{expires: expires, left: expires.Sub(now)}
}

// issueState is the state of the values Secret.
type issueState int

const (
	issuedValues issueState = iota
	waitingForToken
	secretNotOurs
	serverURLMissing
	namespaceForbidden
)

// issue maintains the account, its rights and the values Secret.
func (r *TokenReconciler) issue(ctx context.Context, token *registrationv1alpha1.ClusterRegistrationToken, life life) (issueState, error) {
	if refuseNamespace(r.Namespaces, token.Namespace) != nil {
		//lint:ignore nilerr A refusal is reported as a state.
		return namespaceForbidden, nil
	}
	if r.Hub.URL == "" {
		return serverURLMissing, nil
	}
	for _, part := range accountParts(token) {
		if err := r.ensure(ctx, token, part.desired, part.live); err != nil {
			return 0, err
		}
	}
	return r.ensureValues(ctx, token, life)
}

// part is one object of a token's account, and an empty one to read into.
type part struct{ desired, live client.Object }

// accountParts are the account, its only Role, and their binding.
func accountParts(token *registrationv1alpha1.ClusterRegistrationToken) []part {
	name := accountName(token.Name, token.UID)
	named := metav1.ObjectMeta{Namespace: token.Namespace, Name: name}
	return []part{
		{&corev1.ServiceAccount{ObjectMeta: named}, &corev1.ServiceAccount{}},
		{&rbacv1.Role{ObjectMeta: named, Rules: tokenRules()}, &rbacv1.Role{}},
		{&rbacv1.RoleBinding{
			ObjectMeta: named,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: token.Namespace, Name: name}},
		}, &rbacv1.RoleBinding{}},
	}
}

// tokenRules are all rights of a registration token. They include no list, because only the holder of a
// key should find its request.
func tokenRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{registrationv1alpha1.GroupName},
		Resources: []string{"clusterregistrations"},
		Verbs:     []string{"create", "get"},
	}}
}

// expire deletes the token and its objects. The account is deleted first: then every copy of the token
// stops working, also without a garbage collector.
func (r *TokenReconciler) expire(ctx context.Context, token *registrationv1alpha1.ClusterRegistrationToken) error {
	name := accountName(token.Name, token.UID)
	for _, obj := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name + legacyNameSuffix}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: token.Name}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}},
	} {
		obj.SetNamespace(token.Namespace)
		if err := r.deleteOwned(ctx, token, obj); err != nil {
			return err
		}
	}
	if err := client.IgnoreNotFound(r.Client.Delete(ctx, token)); err != nil {
		return fmt.Errorf("deleting expired ClusterRegistrationToken %q: %w", token.Name, err)
	}
	log.FromContext(ctx).Info("Deleted an expired ClusterRegistrationToken")
	return nil
}

func (r *TokenReconciler) deleteOwned(ctx context.Context, token *registrationv1alpha1.ClusterRegistrationToken, obj client.Object) error {
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	if err == nil && metav1.IsControlledBy(obj, token) {
		err = r.Client.Delete(ctx, obj)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %s of an expired registration token: %w", describe(obj), err)
	}
	return nil
}

func (r *TokenReconciler) writeStatus(ctx context.Context, token *registrationv1alpha1.ClusterRegistrationToken, status registrationv1alpha1.ClusterRegistrationTokenStatus) error {
	return reconcileutil.PatchStatus(ctx, r.Client, token, func() { token.Status = status }, "writing the status of ClusterRegistrationToken %q", token.Name)
}

// accountName is the name of a token's account, role and binding. Because of the UID, a re-created
// token does not inherit the rights of its predecessor.
func accountName(token string, uid types.UID) string {
	room := maxObjectName - len(legacyNameSuffix) - len(uid) - 1
	if len(token) > room {
		token = strings.TrimRight(token[:room], "-.")
	}
	return token + "-" + string(uid)
}
