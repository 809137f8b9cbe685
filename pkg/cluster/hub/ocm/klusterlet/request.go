// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"encoding/pem"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

const (
	// notPrefix begins each refusal.
	notPrefix = "a klusterlet does not create such a request; approve it by hand if you know the requester: "
	// largest limits the size of a request; those of klusterlets have about 500 bytes.
	largest = 16 << 10
)

// Reasons of events on requests.
const (
	// ReasonInvalidKlusterletRequest: klusterlets do not create such a request.
	ReasonInvalidKlusterletRequest = "InvalidKlusterletRequest"
	// ReasonKeyConflict: the cluster of the request has an agent with another key.
	ReasonKeyConflict = "KeyConflict"
	// ReasonRenewalForbidden: the requester is not allowed to renew its certificate.
	ReasonRenewalForbidden = "RenewalForbidden"
	// ReasonNotSigned: the request is approved and not signed.
	ReasonNotSigned = "NotSigned"
	// ReasonAuthorityExpired: the authority that would sign the request has expired.
	ReasonAuthorityExpired = "AuthorityExpired"
	// ReasonApproved: the gateway approved the request. It is the reason of its condition too.
	ReasonApproved = "AutoApprovedByHubCSRApprovingController"
)

// Request is a request of a klusterlet for a certificate.
type Request struct {
	// Cluster is the requested cluster, Agent the name of the klusterlet there.
	Cluster, Agent string
	// Requester is the name of the requesting user.
	Requester string
	// Key is the fingerprint of the public key, as 64 hexadecimal digits.
	Key string
	// Lifetime is how long the certificate is requested to be valid; 0 leaves that to the signer.
	Lifetime time.Duration
}

// CommonName is the user name in the certificate.
func (a Request) CommonName() string { return clusterv1.UserPrefix + a.Cluster + ":" + a.Agent }

// Concerns is true for requests with a klusterlet's label, whatever their content. Those of add-ons
// are not a klusterlet's own.
func Concerns(csr *certificatesv1.CertificateSigningRequest) bool {
	_, addOn := csr.Labels[addonv1alpha1.AddOnNameLabel]
	return csr.Labels[clusterv1.ClusterNameLabel] != "" && !addOn
}

// Read parses a request that follows the contract exactly, or returns how it differs. The contract
// is what klusterlets do: one user of one cluster, whose label the request has, for use as a
// client, and nothing else.
func Read(csr *certificatesv1.CertificateSigningRequest) (Request, *refusal.Refusal) {
	if csr.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		return Request{}, not("its signer is %q, not %s", csr.Spec.SignerName, certificatesv1.KubeAPIServerClientSignerName)
	}
	if refused := refuseUsages(csr.Spec.Usages); refused != nil {
		return Request{}, refused
	}
	parsed, refused := parse(csr.Spec.Request)
	if refused != nil {
		return Request{}, refused
	}
	// Addresses are extensions, and a signer may copy extensions unchecked.
	if len(parsed.Extensions) > 0 {
		return Request{}, not("it has %d extensions, such as addresses", len(parsed.Extensions))
	}
	cluster := csr.Labels[clusterv1.ClusterNameLabel]
	if len(validation.IsDNS1123Label(cluster)) > 0 {
		return Request{}, not("label %s=%q is no name of a cluster", clusterv1.ClusterNameLabel, cluster)
	}
	agent, refused := agentIn(parsed.Subject, cluster)
	if refused != nil {
		return Request{}, refused
	}
	sum := sha256.Sum256(parsed.RawSubjectPublicKeyInfo)
	return Request{Cluster: cluster, Agent: agent, Requester: csr.Spec.Username, Key: hex.EncodeToString(sum[:]),
		Lifetime: time.Duration(ptr.Deref(csr.Spec.ExpirationSeconds, 0)) * time.Second}, nil
}

func not(format string, args ...any) *refusal.Refusal {
	refused := refusal.New(ReasonInvalidKlusterletRequest, format, args...)
	refused.Message = notPrefix + refused.Message
	return refused
}

// refuseUsages accepts only those of a client certificate.
func refuseUsages(usages []certificatesv1.KeyUsage) *refusal.Refusal {
	if !slices.Contains(usages, certificatesv1.UsageClientAuth) {
		return not("it is not for %q", certificatesv1.UsageClientAuth)
	}
	for _, usage := range usages {
		switch usage {
		case certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment:
		default:
			return not("it is for %q, too", usage)
		}
	}
	return nil
}

// parse reads one PEM request, signed by the holder of its key.
func parse(content []byte) (*x509.CertificateRequest, *refusal.Refusal) {
	if len(content) > largest {
		return nil, not("it has %d bytes, more than %d", len(content), largest)
	}
	block, rest := pem.Decode(content)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(block.Headers) > 0 || len(bytes.TrimSpace(rest)) > 0 {
		return nil, not("it is not one request in PEM")
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, not("it cannot be read: %w", err)
	}
	// Checked first, because verifying an RSA key of this size can take seconds.
	if _, curve := parsed.PublicKey.(*ecdsa.PublicKey); !curve {
		return nil, not("its key is of the kind %s, not ECDSA", parsed.PublicKeyAlgorithm)
	}
	if err := parsed.CheckSignature(); err != nil {
		return nil, not("it is not signed by the holder of its key: %w", err)
	}
	return parsed, nil
}

var (
	commonName   = asn1.ObjectIdentifier{2, 5, 4, 3}
	organization = asn1.ObjectIdentifier{2, 5, 4, 10}
)

// namesIn returns the common names and organizations of a subject, which may have nothing else.
func namesIn(subject pkix.Name) (names, groups []string, refused *refusal.Refusal) {
	for _, part := range subject.Names {
		text, isText := part.Value.(string)
		switch {
		case isText && part.Type.Equal(commonName):
			names = append(names, text)
		case isText && part.Type.Equal(organization):
			groups = append(groups, text)
		default:
			return nil, nil, not("its subject has more than a common name and organizations")
		}
	}
	return names, groups, nil
}

// agentIn returns the agent's name in a subject of a klusterlet of the cluster.
func agentIn(subject pkix.Name, cluster string) (string, *refusal.Refusal) {
	names, groups, refused := namesIn(subject)
	if refused != nil {
		return "", refused
	}
	slices.Sort(groups)
	own := clusterv1.UserPrefix + cluster
	if !slices.Equal(groups, []string{own}) && !slices.Equal(groups, slices.Sorted(slices.Values([]string{own, clusterv1.AgentsGroup}))) {
		return "", not("its organizations are %q, not %q, and %q if any", groups, own, clusterv1.AgentsGroup)
	}
	if len(names) != 1 {
		return "", not("it has %d common names, not one", len(names))
	}
	agent, isOwn := strings.CutPrefix(names[0], own+":")
	if !isOwn || agent == "" || strings.Contains(agent, ":") {
		return "", not("its common name is %q, not that of an agent of cluster %q: %s:AGENT", names[0], cluster, own)
	}
	return agent, nil
}
