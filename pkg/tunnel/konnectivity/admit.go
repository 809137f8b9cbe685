// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package konnectivity

import (
	"context"

	"google.golang.org/grpc/codes"
	grpccredentials "google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// admit returns an agent's identity and the member that it serves. Its errors are gRPC's.
func (a *AgentServer) admit(ctx context.Context) (Identity, string, agentInfo, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	id, err := identifyPeer(ctx, a.options.Credentials, md.Get(headerAuthorization))
	if err != nil {
		return id, "", agentInfo{}, err
	}
	agent, err := parseAgentInfo(md)
	if err != nil {
		return id, "", agent, status.Error(codes.InvalidArgument, err.Error())
	}
	member, err := a.memberOf(ctx, id.Name, agent.hosts)
	return id, member, agent, err
}

// memberOf is the member that an agent serves: one of those that its identity may serve. The
// agent's own identifiers can only choose among those, or show that it is the wrong agent. Its errors
// are gRPC's.
func (a *AgentServer) memberOf(ctx context.Context, user string, hosts []string) (string, error) {
	for _, host := range hosts {
		is, err := a.options.IsAgentOf(ctx, user, host)
		if err != nil {
			return "", status.Error(codes.Unavailable, "the gateway cannot determine the member of this agent: "+err.Error())
		}
		if is {
			return host, nil
		}
	}
	if len(hosts) > 0 {
		return "", status.Errorf(codes.PermissionDenied, "%q is not the agent of %q: its agentIdentifiers name another member than its credential", user, printable(hosts[0]))
	}
	members, err := a.options.MembersOf(ctx, user)
	switch {
	case err != nil:
		return "", status.Error(codes.Unavailable, "the gateway cannot determine the member of this agent: "+err.Error())
	case len(members) == 0:
		return "", status.Errorf(codes.PermissionDenied, "%q is the agent of no member: compare with spec.identity of its MemberCluster", user)
	case len(members) > 1:
		return "", status.Errorf(codes.PermissionDenied, "%q is the agent of %d members: say which one with --agent-identifiers=host=<member>", user, len(members))
	}
	return members[0], nil
}

// identifyPeer returns the identity of the peer of a gRPC stream. Its errors are gRPC's.
func identifyPeer(ctx context.Context, c Credentials, authorization []string) (Identity, error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return Identity{}, status.Error(codes.Unauthenticated, "no peer")
	}
	info, ok := p.AuthInfo.(grpccredentials.TLSInfo)
	if !ok {
		return Identity{}, status.Error(codes.Unauthenticated, "no TLS")
	}
	id, ok, err := c.identify(ctx, info.State, authorization)
	if err != nil {
		return id, status.Error(codes.Unavailable, "the gateway cannot determine the caller: "+err.Error())
	}
	if !ok {
		return id, status.Error(codes.Unauthenticated, "no credential that is good at this listener")
	}
	return id, nil
}

func peerAddress(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok {
		return p.Addr.String()
	}
	return ""
}
