// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"crypto/x509"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/cluster/hub/identity"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// keepUnserved is how long a request of an add-on without a certificate is kept. Agents create a new
// one when it is gone, and none while ten exist.
const keepUnserved = 24 * time.Hour

// ReasonInvalidAddOnRequest is the reason of an event about a request that no agent creates for an add-on.
const ReasonInvalidAddOnRequest = "InvalidAddOnRequest"

// addOnRequest is the cluster and the add-on in the labels of a request.
type addOnRequest struct{ cluster, addOn string }

// ofAddOn reports whether the agent of a cluster requested a certificate for an add-on, whatever the
// content of the request.
func ofAddOn(csr *certificatesv1.CertificateSigningRequest) bool {
	return csr.Labels[clusterv1.ClusterNameLabel] != "" && csr.Labels[addonv1alpha1.AddOnNameLabel] != ""
}

// reconcileAddOn signs a request of an add-on that its manager approved, if the gateway signs, and
// deletes it when it has served. It never approves one: the manager knows its agents.
func (a *Approver) reconcileAddOn(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) (ctrl.Result, error) {
	approved, _ := decisionOn(csr)
	switch {
	case len(csr.Status.Certificate) > 0:
		return a.remove(ctx, csr)
	case !approved || csr.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName:
		return a.removeUnserved(ctx, csr)
	case a.Signer == nil:
		if result := a.reportNotSigned(csr); result.RequeueAfter > 0 {
			return result, nil
		}
		return a.removeUnserved(ctx, csr)
	}
	if refused := RefuseAddOn(csr); refused != nil {
		a.report(csr, refused)
		return a.removeUnserved(ctx, csr)
	}
	seconds := csr.Spec.ExpirationSeconds
	if isMembersAgent(csr.Spec.Username) {
		seconds = ptr.To(min(ptr.Deref(seconds, math.MaxInt32), int32(clusterv1.AgentCertificateLife.Seconds())))
	}
	return ctrl.Result{}, a.sign(ctx, csr, seconds)
}

// isMembersAgent reports whether a user is the agent of a member of ours. What it gets must not
// outlive its account for long.
func isMembersAgent(user string) bool {
	_, account := identity.FleetSeats().MemberOfUsername(user)
	return account || strings.HasSuffix(user, ":"+clusterv1.AgentName)
}

// removeUnserved deletes a request that nobody has served for long.
func (a *Approver) removeUnserved(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) (ctrl.Result, error) {
	if left := csr.CreationTimestamp.Add(keepUnserved).Sub(a.Clock.Now()); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	if err := a.Client.Delete(ctx, csr, client.Preconditions{UID: &csr.UID}); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("deleting unserved CertificateSigningRequest %q: %w", csr.Name, err)
	}
	return ctrl.Result{}, nil
}

// RefuseAddOn returns how a request differs from the contract: an agent of the cluster in the label
// requests it, for one user of the add-on on this cluster, and nothing else. An approval does not
// suffice, because managers compare only the beginning of the requester's name.
func RefuseAddOn(csr *certificatesv1.CertificateSigningRequest) *refusal.Refusal {
	request := addOnRequest{cluster: csr.Labels[clusterv1.ClusterNameLabel], addOn: csr.Labels[addonv1alpha1.AddOnNameLabel]}
	parsed, refused := parseAddOn(csr, request.addOn)
	if refused == nil {
		refused = request.refuse(csr.Spec.Username, parsed)
	}
	if refused == nil {
		return nil
	}
	return refusal.New(ReasonInvalidAddOnRequest, "the gateway does not sign such a request of an add-on, although it is approved: %s",
		strings.TrimPrefix(refused.Message, notPrefix))
}

// ParseAddOn returns the content of a request by an agent of the cluster in its label, or by the add-on's
// agent there, for a client certificate. Its error is a refusal. The caller compares the subject.
func ParseAddOn(csr *certificatesv1.CertificateSigningRequest) (*x509.CertificateRequest, error) {
	request := addOnRequest{cluster: csr.Labels[clusterv1.ClusterNameLabel], addOn: csr.Labels[addonv1alpha1.AddOnNameLabel]}
	parsed, refused := parseAddOn(csr, request.addOn)
	if refused == nil && !request.requestedBy(csr.Spec.Username) {
		refused = not("%q is no agent of cluster %q", csr.Spec.Username, request.cluster)
	}
	if refused != nil {
		return nil, refusal.New(ReasonInvalidAddOnRequest, "the gateway does not approve such a request of an add-on: %s", strings.TrimPrefix(refused.Message, notPrefix))
	}
	return parsed, nil
}

// SignAddOn signs a request that ParseAddOn accepts with the authority of an add-on.
func SignAddOn(clock clock.PassiveClock) func(certificate, key, request []byte, life time.Duration) ([]byte, error) {
	return func(certificate, key, request []byte, life time.Duration) ([]byte, error) {
		signer, err := NewSigner(certificate, key, clock)
		if err != nil {
			return nil, err
		}
		return signer.Sign(request, ptr.To(int32(life.Seconds())))
	}
}

func parseAddOn(csr *certificatesv1.CertificateSigningRequest, addOn string) (*x509.CertificateRequest, *refusal.Refusal) {
	if refused := refuseUsages(csr.Spec.Usages); refused != nil {
		return nil, refused
	}
	parsed, refused := parse(csr.Spec.Request)
	if refused != nil {
		return nil, refused
	}
	// Agents add the name of the add-on; certificates are signed without.
	others := len(parsed.IPAddresses) + len(parsed.EmailAddresses) + len(parsed.URIs)
	if len(parsed.Extensions) > 1 || len(parsed.Extensions) == 1 && (others > 0 || !slices.Equal(parsed.DNSNames, []string{addOn + ".addon.open-cluster-management.io"})) {
		return nil, not("it has extensions, such as addresses")
	}
	return parsed, nil
}

// refuse returns why the requester cannot have the subject.
func (r addOnRequest) refuse(requester string, parsed *x509.CertificateRequest) *refusal.Refusal {
	if !r.requestedBy(requester) {
		return not("%q is no agent of cluster %q", requester, r.cluster)
	}
	users, groups, refused := namesIn(parsed.Subject)
	if refused != nil {
		return refused
	}
	own := clusterv1.UserPrefix + "cluster:" + r.cluster + ":addon:" + r.addOn
	allowed := []string{own, clusterv1.UserPrefix + "addon:" + r.addOn, "system:authenticated"}
	for _, group := range groups {
		if !slices.Contains(allowed, group) {
			return not("its organization %q is none of %q", group, allowed)
		}
	}
	agent, isOwn := "", false
	if len(users) == 1 {
		agent, isOwn = strings.CutPrefix(users[0], own+":agent:")
	}
	if !isOwn || agent == "" || strings.Contains(agent, ":") {
		return not("its common names are %q, not that of an agent of the add-on on cluster %q: %s:agent:AGENT", users, r.cluster, own)
	}
	return nil
}

// requestedBy reports whether a user is an agent of the cluster, a klusterlet or ours, or the agent of
// the add-on there.
func (r addOnRequest) requestedBy(user string) bool {
	if user == identity.FleetSeats().Username(r.cluster) {
		return true
	}
	if agent, is := strings.CutPrefix(user, clusterv1.UserPrefix+"cluster:"+r.cluster+":addon:"+r.addOn+":agent:"); is {
		return agent != "" && !strings.Contains(agent, ":")
	}
	agent, is := strings.CutPrefix(user, clusterv1.UserPrefix+r.cluster+":")
	return is && agent != "" && !strings.Contains(agent, ":")
}
