// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
	"k8s.io/apiserver/pkg/authentication/user"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// HubPrefix prefixes system: names of the hub, such as ServiceAccounts, on members, because the
// same name identifies another account there.
const HubPrefix = "hub:"

const systemPrefix = "system:"

// Users and groups of administrators in clusters of kubeadm. Members never let the gateway
// impersonate them.
const (
	kubeadmUser  = "kubernetes-admin"
	kubeadmGroup = "kubeadm:cluster-admins"
)

// Impersonation is the identity that the member sees.
type Impersonation struct {
	User string
	// Groups are sorted and without duplicates.
	Groups []string
}

// Impersonate returns the identity of a caller of the hub on a member. A refusal is not empty if
// the caller cannot be represented truthfully; it names the remedy.
//
// groups maps groups of the hub to groups of members. A mapped group replaces the caller's own.
// Groups of administrators are refused unless they are mapped: a member cannot limit them.
//
// uid and extra are not carried over: a member answers 403 to the whole request if the impersonator
// lacks the permission for any single one of them. Groups that start with system: are dropped,
// because the member adds its own.
func Impersonate(caller user.Info, groups map[string]string) (as Impersonation, refusal string) {
	name := caller.GetName()
	switch {
	case name == "":
		return as, "the caller has no name"
	case strings.HasPrefix(name, HubPrefix):
		return as, fmt.Sprintf("names that begin with %q are kept for the hub's own accounts: use another user", HubPrefix)
	case strings.HasPrefix(name, systemPrefix), name == kubeadmUser:
		name = HubPrefix + name
	}
	if !validIdentity(name) {
		return as, "the caller's name cannot be written into a header"
	}
	for _, group := range caller.GetGroups() {
		mapped, isMapped := groups[group]
		switch {
		case isMapped:
			group = mapped
		case group == user.SystemPrivilegedGroup || group == kubeadmGroup:
			return Impersonation{}, refuseAdministrators(group)
		case group == "" || strings.HasPrefix(group, systemPrefix):
			continue
		}
		if !validIdentity(group) {
			return Impersonation{}, "one of the caller's groups cannot be written into a header"
		}
		as.Groups = append(as.Groups, group)
	}
	slices.Sort(as.Groups)
	as.User, as.Groups = name, slices.Compact(as.Groups)
	return as, ""
}

// refuseAdministrators names the ways in which an administrator of the hub can reach a member.
func refuseAdministrators(group string) string {
	return fmt.Sprintf("a caller in group %s has no identity that a member can limit: label the MemberCluster with %s=%s, "+
		"or map the group to one of the member (proxy.memberGroups of the gateway), "+
		"or use an ordinary user, allow it clustergateways/proxy on the hub, and bind it on the member "+
		"(kubectl create clusterrolebinding NAME --clusterrole=ROLE --user=USER)",
		group, authenticationv1beta1.LabelIdentity, authenticationv1beta1.IdentityServiceAccount)
}

// RefuseMemberGroup is why no group of the hub can be mapped to a group of members, or "".
func RefuseMemberGroup(group string) string {
	switch {
	case group == "" || !validIdentity(group):
		return "the name of the group is empty or cannot be written into a header"
	case strings.HasPrefix(group, systemPrefix) || group == kubeadmGroup:
		return "members grant no system group and no group of kubeadm: name another group, and bind it to a role on the member"
	}
	return ""
}

// validIdentity also refuses leading and trailing spaces: they are lost in transit and the name
// would become another user's.
func validIdentity(s string) bool {
	return httpguts.ValidHeaderFieldValue(s) && strings.TrimSpace(s) == s
}

const (
	headerAuthorization = "Authorization"
	headerUser          = "Impersonate-User"
	headerGroup         = "Impersonate-Group"
	subprotocol         = "sec-websocket-protocol"

	bearerSubprotocol = "base64url.bearer.authorization.k8s.io."
)

// carriesIdentity is true for a header that could tell a member, or something behind it, who is
// calling. Some servers read "_" as "-".
func carriesIdentity(header string) bool {
	name := plain(header)
	switch name {
	case "authorization", "proxy-authorization", "cookie", "forwarded":
		return true
	}
	for _, prefix := range []string{"impersonate-", "x-remote-", "x-forwarded-", "x-kubernetes-pf-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// plain is a header's name as the most lenient servers read it.
func plain(header string) string { return strings.ReplaceAll(strings.ToLower(header), "_", "-") }

// stripIdentity removes all headers that identify the caller.
func stripIdentity(h http.Header) {
	for name := range h {
		switch {
		case carriesIdentity(name):
			delete(h, name)
		case plain(name) == subprotocol:
			stripBearer(h, name)
		}
	}
}

// stripBearer removes a token that a browser sends as a WebSocket subprotocol, the only header that
// it can set. The header's name may have any case.
func stripBearer(h http.Header, name string) {
	var kept []string
	for _, protocol := range strings.Split(strings.Join(h[name], ","), ",") {
		if protocol = strings.TrimSpace(protocol); protocol != "" && !isBearerSubprotocol(protocol) {
			kept = append(kept, protocol)
		}
	}
	if len(kept) == 0 {
		delete(h, name)
		return
	}
	h[name] = []string{strings.Join(kept, ", ")}
}

func isBearerSubprotocol(protocol string) bool {
	return len(protocol) >= len(bearerSubprotocol) && strings.EqualFold(protocol[:len(bearerSubprotocol)], bearerSubprotocol)
}

// setIdentity sets the identity that the member sees.
func setIdentity(h http.Header, as Impersonation) {
	h[headerUser] = []string{as.User}
	if len(as.Groups) > 0 {
		h[headerGroup] = slices.Clone(as.Groups)
	}
}

var errForeignIdentity = errors.New("a header that carries an identity was left in the request")

// checkIdentity fails unless the headers carry exactly that identity. It is the last check before a
// request is sent.
func checkIdentity(h http.Header, as Impersonation) error {
	for name, values := range h {
		switch {
		case name == headerUser && slices.Equal(values, []string{as.User}) && as.User != "":
		case name == headerGroup && slices.Equal(values, as.Groups) && as.User != "":
		case carriesIdentity(name):
			return fmt.Errorf("%w: %s", errForeignIdentity, untrusted.Excerpt(name, 64))
		case name == "Connection" && !slices.Equal(values, []string{"Upgrade"}):
			return fmt.Errorf("%w: Connection", errForeignIdentity)
		}
	}
	if as.User != "" && len(h[headerUser]) == 0 || len(as.Groups) > 0 && len(h[headerGroup]) == 0 {
		return errors.New("the identity was lost from the request")
	}
	return nil
}

// key identifies the pair in caches. It contains no secret.
func (i Impersonation) key() string {
	var b strings.Builder
	for _, part := range append([]string{i.User}, i.Groups...) {
		b.WriteString(base64.RawStdEncoding.EncodeToString([]byte(part)))
		b.WriteByte(' ')
	}
	return b.String()
}
