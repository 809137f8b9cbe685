// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package impersonation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
)

// A Mode names the verbs by which the gateway's account impersonates on a member. Its text is the
// value of the member's property.
type Mode string

const (
	// Constrained uses the verbs of KEP-5284, which authorize identity and request separately. They
	// never allow the identity of a node, an account of the member or system:masters, whatever the
	// role says. API servers support them from Kubernetes 1.36.
	Constrained Mode = "constrained"
	// Plain is the verb impersonate, for older API servers.
	Plain Mode = "plain"

	legacyVerb   = "impersonate"
	identityVerb = "impersonate:user-info"
	actionPrefix = "impersonate-on:user-info:"

	// canary is a user that the account can impersonate only with the constrained verbs, in either
	// mode. If that succeeds, the API server supports them. There is no other way to detect it.
	canary = "fleetgate:impersonation-probe"

	// retryInterval is the maximum age of a detected mode: the API server can be upgraded or get other
	// feature gates.
	retryInterval = time.Minute
	// recheckInterval is the interval at which the role is checked without requests.
	recheckInterval = 10 * time.Minute
	// probeTokenSeconds is the minimum lifetime of a token.
	probeTokenSeconds = 600
)

// attributes returns the attributes of an access review for one name.
func (m Mode) attributes(resource, name string) *authorizationv1.ResourceAttributes {
	if m == Constrained {
		return &authorizationv1.ResourceAttributes{Verb: identityVerb, Group: authenticationv1.GroupName, Resource: resource, Name: name}
	}
	return &authorizationv1.ResourceAttributes{Verb: legacyVerb, Resource: resource, Name: name}
}

// rules allow impersonating only these users and groups. A rule without names is omitted, because
// it would allow all.
func (m Mode) rules(users, groups []string) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	add := func(resource string, names []string) {
		if len(names) == 0 {
			return
		}
		of := m.attributes(resource, "")
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{of.Group}, Resources: []string{resource}, Verbs: []string{of.Verb}, ResourceNames: names})
	}
	add("users", users)
	add("groups", groups)
	if m == Constrained && len(rules) > 0 {
		rules = append(rules, actionRules()...)
	}
	return append(rules, probeRules()...)
}

// actionRules allow all requests as those users and groups. The member's RBAC then authorizes each
// request for the impersonated user.
func actionRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: actionVerbs("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")},
		{NonResourceURLs: []string{"*"}, Verbs: actionVerbs("get", "head", "options", "post", "put", "patch", "delete")},
	}
}

func actionVerbs(verbs ...string) []string {
	for i, verb := range verbs {
		verbs[i] = actionPrefix + verb
	}
	return verbs
}

func probeRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{authenticationv1.GroupName}, Resources: []string{"users"}, Verbs: []string{identityVerb}, ResourceNames: []string{canary}},
		{APIGroups: []string{authenticationv1.GroupName}, Resources: []string{"selfsubjectreviews"}, Verbs: []string{actionPrefix + "create"}},
	}
}

// modeOf returns the mode in which a role was written, or "" if it allows no identity.
func modeOf(rules []rbacv1.PolicyRule) Mode {
	verbs := map[string]bool{}
	for _, rule := range rules {
		if !slices.Equal(rule.ResourceNames, []string{canary}) {
			for _, verb := range rule.Verbs {
				verbs[verb] = true
			}
		}
	}
	switch {
	case verbs[legacyVerb]:
		return Plain
	case verbs[identityVerb]:
		return Constrained
	}
	return ""
}

// Mode returns the verbs by which the gateway's account impersonates, or "" while unknown.
func (g *Grants) Mode() Mode {
	mode, _ := g.message.Load().(Mode)
	return mode
}

// Run keeps the role in the mode of the member's API server, also without requests. Grants in
// another mode, also of an earlier version of the agent, are rewritten. It returns when the context
// ends.
func (g *Grants) Run(ctx context.Context) {
	wait.JitterUntilWithContext(ctx, func(ctx context.Context) {
		if _, err := g.write(ctx, nil); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Info("Could not update the impersonation role; retrying", "error", err.Error(), "after", recheckInterval)
		}
	}, recheckInterval, 0.2, true)
}

// settle detects the mode if the last detection is too old. The caller holds the lock, and the
// binding exists. If the detection fails, the mode stays.
func (g *Grants) settle(ctx context.Context) (Mode, error) {
	if g.Mode() != "" && time.Since(g.detected) < retryInterval {
		return g.Mode(), nil
	}
	var written Mode
	err := retry.OnError(overtaken(), isOvertaken, func() (err error) {
		written, err = g.prepareRole(ctx)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("preparing ClusterRole %s: %w", g.roleName(), err)
	}
	knows, err := g.probe(ctx)
	if apierrors.IsNotFound(err) { // the gateway's account does not exist yet
		return cmp.Or(g.Mode(), written, Plain), nil
	}
	mode := Plain
	switch {
	case err != nil:
		mode = cmp.Or(written, Plain)
		log.FromContext(ctx).Info("Could not detect whether the member's API server supports constrained impersonation", "mode", mode, "error", err.Error())
	case knows:
		mode, g.detected = Constrained, time.Now()
	default:
		g.detected = time.Now()
	}
	if before := g.message.Swap(mode); before != mode {
		log.FromContext(ctx).Info("Detected the impersonation mode of the member", "mode", mode)
	}
	return mode, nil
}

// probe impersonates the canary with a token of the gateway's account.
func (g *Grants) probe(ctx context.Context) (knows bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, effectiveWithin)
	defer cancel()
	if err := g.waitAllowed(ctx, Constrained, "users", canary); err != nil {
		return false, err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: g.AccountNamespace, Name: authenticationv1beta1.GatewayAccount}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](probeTokenSeconds)}}
	if err := g.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return false, fmt.Errorf("requesting a token of ServiceAccount %s/%s: %w", account.Namespace, account.Name, err)
	}
	config := rest.AnonymousClientConfig(g.Member)
	config.BearerToken = request.Status.Token
	config.Impersonate = rest.ImpersonationConfig{UserName: canary}
	asCanary, err := authenticationclient.NewForConfig(config)
	if err != nil {
		return false, fmt.Errorf("reaching the member as the gateway's account: %w", err)
	}
	review, err := asCanary.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if apierrors.IsForbidden(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking the member who the gateway's account is while it acts as another: %w", err)
	}
	return review.Status.UserInfo.Username == canary, nil
}
